"""Scripts that one would write for ``bpe train`` and ``bpe encode`` without this package."""
