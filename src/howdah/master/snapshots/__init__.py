"""Decides when a snapshot of an output begins, and follows it to its end."""
