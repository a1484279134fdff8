"""The outputs of tasks: part files, the commit that publishes them all at once, and snapshots while programs run."""
