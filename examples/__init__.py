"""Programs that use the library; not part of what is installed."""
