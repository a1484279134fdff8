"""Checks before the program starts: of this container alone, and of pairs of containers."""
