"""The history server: shows all jobs, ended or running, from their event logs, which it finds by a small index.

The rule: the logs are the truth. The index can be removed at any time, and a job's page is the fold of its log.
"""
