"""One process each: a contender does one piece of work, and says how long it took and what it made.

``python -m benchmarks.contenders MODULE NAME ARGUMENT...`` prints a `Report` as JSON in the last
line of its standard output. With ``--check`` it does the same work, but times nothing and reports
only what it made. All contenders of a work get the same texts, and answer with the same digest, or
the bench ends.
"""
