"""Messages between master, executor and program, and how they are signed."""
