"""The directory of a job: what is in it, whose it is, what says that it is complete."""
