"""Speed and memory against the peers, in one run: ``make bench``; ``python -m benchmarks --help``.

A *work* is a row of the table. Each of its *contenders* is one process that does the work and says
how long it took and what came out (`benchmarks.contenders`); `benchmarks.rounds` runs them.
"""
