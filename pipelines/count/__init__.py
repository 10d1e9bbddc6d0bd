"""Documents to counts of pre-tokens."""
