"""Comparison of several tokenizers on one corpus.

- `splits`: the stage, a split a unit, and its fold; `totals` and `pieces`: what both add up.
- `job`: the plan and the command; `result`: the file that it writes.
- `two`: two tokenizers without a corpus; `tokenizers`: how a command line names them.
"""
