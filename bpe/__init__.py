"""Exact byte-pair encoding: count pre-tokens, train a tokenizer, encode and decode."""
