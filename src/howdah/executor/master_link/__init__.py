"""The executor's connection to its master: signed heartbeats, and finding a new master."""
