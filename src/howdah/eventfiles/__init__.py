"""Reads event files and checkpoints in place, in a process of its own, and draws charts of them."""
