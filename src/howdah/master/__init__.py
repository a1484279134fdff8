"""The master: one loop that does what `step` decides, and writes down what happens."""
