"""What tasks print: where it is stored, indexed by time, and searched."""
