"""The textbook algorithm in plain Python, slow and obvious: what the core is compared with."""
