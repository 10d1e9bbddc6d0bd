"""Files on any filesystem that Beam knows."""
