"""Files: where they are, how they get to a task and back, and what travels into containers.

What runs on a container's own Python (`uris`, `deal`, `fs`, `local`) is standard library only, CPython >= 3.9.
"""
