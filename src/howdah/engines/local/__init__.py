"""This machine as an engine: containers are processes, with a share in the ledger that all jobs use."""
