"""Read event files and checkpoints where they lie, in a process of its own, and draw charts of them."""
