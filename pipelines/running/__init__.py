"""Where pipelines run, and what goes wrong there."""
