"""Requests about a running program: stack dumps, log searches, preemption notices."""
