"""Submit a job to a runner whose workers are other processes, and watch the job from here.

Before submission, `workers` reads the place of the workers from Beam's options, and `checks`
refuses files that the workers cannot see, and workers that lack this package. After submission,
`job` waits for the end of the job or cancels the job.
"""
