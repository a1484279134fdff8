"""Copies of outputs while the programs run: when, by whom, and when one counts."""
