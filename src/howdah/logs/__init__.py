"""Logs of tasks: read live, on the node or from an archive (`store`, `archive`), indexed by time, and searched."""
