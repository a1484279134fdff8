"""A machine for a while: shells, commands and copies in running tasks, and programs that people open in a browser."""
