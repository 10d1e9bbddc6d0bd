"""Other runners than the local one, on this machine: Flink and Prism, for tests and trials.

``make cluster`` brings what they are made of; ``python -m tests.cluster start`` runs Flink.
"""
