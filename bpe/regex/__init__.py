"""Regular expressions: read once, run as tables, carried over to Oniguruma, bounded in time."""
