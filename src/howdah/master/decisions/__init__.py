"""What the master decides. Pure: `step` and its parts read no clock and open nothing."""
