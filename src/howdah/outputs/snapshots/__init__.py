"""Copies of outputs made while the programs run."""
