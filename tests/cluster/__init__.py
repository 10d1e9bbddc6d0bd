"""Runners beside the local one, on this machine: Flink and Prism, for tests and for trying out.

``make cluster`` brings what they are made of; ``python -m tests.cluster start`` runs Flink.
"""
