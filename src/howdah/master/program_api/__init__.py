"""Answers the calls of programs (`howdah.program`): key-values, barriers, metrics, snapshots."""
