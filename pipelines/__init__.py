"""Apache Beam jobs around ``bpe``: corpus to counts, counts to tokenizer, corpus to token ids."""
