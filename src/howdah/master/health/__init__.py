"""Detect programs that hang or lag, and find the task to blame."""
