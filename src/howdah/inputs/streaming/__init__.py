"""Inputs as streams of records: files are cut into splits, tasks get splits, and programs read the records on stdin."""
