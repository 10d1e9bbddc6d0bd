"""Encode documents into Parquet parts of token ids."""
