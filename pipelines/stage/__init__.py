"""The only mechanism for doing work, restarting it, and proving it finished.

A job is a sequence of stages, and a stage has units. A worker makes a unit: it writes the unit's
files, and then a record of these files.

- `record`: records of finished units, and checks of their files.
- `stage`: the classes of jobs and stages, and the making of one unit.
- `beam`: a job as a pipeline; `job`: running it for a command, and its temporary directory.
"""
