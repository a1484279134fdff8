"""Inputs as a stream of records: how files are cut into splits, which task gets which, and what reaches its stdin."""
