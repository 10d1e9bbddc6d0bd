"""Handing a job to a runner whose workers are not this process, and watching it from here.

Before: `workers` reads from Beam's options where the workers are, `checks` refuses files that they
cannot see and a job whose workers lack this package. Afterwards: `job` waits for the end and
cancels.
"""
