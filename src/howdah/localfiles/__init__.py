"""Paths of this machine: regular files that people name, symbolic links, temporary directories. Standard library
only."""
