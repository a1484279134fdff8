"""Files of this machine: those that people name, symbolic links, temporary directories. Standard library only."""
