"""What is asked of a running program: stack dumps, log searches, preemption notices."""
