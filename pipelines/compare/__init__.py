"""What several tokenizers make of one corpus."""
