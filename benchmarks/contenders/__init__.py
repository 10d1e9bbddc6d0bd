"""One process each: a contender does one piece of work, and says how long it took and what it made.

``python -m benchmarks.contenders time MODULE NAME ARGUMENT...`` prints a `Report` as JSON in the
last line of its standard output. With ``check`` instead of ``time`` it does the same work, and
reports what it made and the memory it took, but no time; with ``prepare`` it makes the files that
the work needs. All contenders of a work get the same texts, and answer with the same digest, or the
bench ends.
"""
