"""What somebody without this package would write for ``bpe train`` and ``bpe encode``."""
