"""Handing jobs to runners elsewhere: what is decided before, and what is made of failures."""
