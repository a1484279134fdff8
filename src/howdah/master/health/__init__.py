"""Detects programs that hang or lag, and finds the task to blame."""
