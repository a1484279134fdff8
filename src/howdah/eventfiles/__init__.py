"""Curves and contents of checkpoints: event files read where they are, by a process of its own; charts of them."""
