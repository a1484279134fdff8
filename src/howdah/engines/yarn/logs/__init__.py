"""Aggregated logs of ended applications, in YARN's two file formats."""
