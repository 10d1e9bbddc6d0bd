"""The corpus: which files, cut where, and the documents in them."""
