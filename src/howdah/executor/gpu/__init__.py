"""GPUs of the node: claimed by one executor at a time, and sampled."""
