"""Files that appear, encoded or counted as they arrive: a job that runs day and night.

`arrivals` says which files are there and complete, `log` keeps what was done with each, `encoding`
and `counting` do it (plain functions and objects), `drift` looks at how well the tokenizer fits.
`transform` puts them on Beam, and `job` runs them until it is told to stop.
"""
