"""The relay process beside an executor: it connects to the ports of the task, and runs commands beside its program."""
