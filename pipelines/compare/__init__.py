"""Compare several tokenizers on one corpus.

- `splits`: the stage, whose unit is a split, and its fold; `totals` and `pieces`: what they add up.
- `job`: the plan and the command; `result`: the JSON file of a comparison.
- `two`: two tokenizers without a corpus; `tokenizers`: names on the command line.
"""
