"""Reads event files and checkpoints where they lie, in a process of its own, and draws charts of them."""
