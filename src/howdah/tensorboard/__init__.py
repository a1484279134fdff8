"""Serves TensorBoard over the event files of a job or of all jobs, in a process of its own whose environment has
TensorBoard. The process reads through `howdah.storage`, answers those who have its token, and ends when it is idle."""
