"""What a task reads: which files are its own, how they are downloaded or streamed, in which record formats."""
