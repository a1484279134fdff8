"""The queue, the resource ledger and the supervisor process of the jobs on this machine.

The supervisor is a process that runs as long as a user's jobs wait or run, so it is small and starts quickly: it
imports `os`, `json` and a few extension modules, nothing of howdah outside this package, and neither `typing`,
`pathlib` nor `subprocess`, whose imports take longer than all it does.
"""
