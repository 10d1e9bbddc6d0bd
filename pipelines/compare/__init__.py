"""Compare several tokenizers on one corpus.

- `job`: the command and its job, whose units are splits; `totals` and `pieces`: what it adds up.
- `result`: the JSON file of a comparison.
- `two`: two tokenizers without a corpus; `tokenizers`: names on the command line.
"""
