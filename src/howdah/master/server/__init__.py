"""The master's one port: executors, clients and the page."""
