"""What a task writes: part files, the commit that shows them all at once, and snapshots while it runs."""
