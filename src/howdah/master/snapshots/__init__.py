"""Snapshots: copies of outputs while the programs run."""
