"""The master's decisions. Pure: `step` and its parts read no clock and open nothing."""
