"""Documents to Parquet parts of token ids."""
