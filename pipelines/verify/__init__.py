"""Whether an output is what its manifest and its input say."""
