"""The history server: all jobs that were and are, from their event logs, found again by a small index of its own.

The rule: the logs are the truth. The index can be removed at any time, and a job's page is the fold of its log.
"""
