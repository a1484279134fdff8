"""The inputs of tasks: which files a task gets, how they are downloaded or streamed, and in which record formats."""
