"""Handing a job to a runner whose workers are not this process, and watching it from here.

Before: `workers` reads from Beam's options where the workers are, `paths` refuses files that they
cannot see, `package` a job whose workers lack this package. Afterwards: `waiting` waits for the end
and cancels, `job_service` does what Beam's client does not offer.
"""
