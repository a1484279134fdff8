"""Hadoop YARN as an engine, spoken to by its own protocols."""
