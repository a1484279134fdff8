"""TonY's commands, frameworks, job type of Azkaban, and histories; `submit` makes a job of a command line."""
