"""Handing a job to a runner whose workers are not this process, and watching it from here.

Before: `pipelines.submission.workers` reads from Beam's options where the workers are,
`pipelines.submission.paths` refuses files that they cannot see, and `pipelines.submission.staging`
sees to it that they get this package. Afterwards: `pipelines.submission.watching` waits, tells how
far the job is, and cancels it; `pipelines.causes` finds the one line that matters in
what a failed job leaves.
"""
