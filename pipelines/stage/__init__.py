"""One way to do work, to start it again, and to prove it done.

A job is a sequence of stages. A stage has units; a worker makes each unit: its files, and last a
record of them.

- `record`: what was made of a unit, and whether its files are still the same.
- `stage`: what a job and its stages are, and making one unit.
- `beam`: a job as a pipeline; `job`: running it for a command.
"""
