"""Submarine's commands and frameworks; `job_run` makes a job of a command line."""
