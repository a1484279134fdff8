"""The user's program as a process: started, measured, watched and ended with all its children."""
