"""Programs that hang or lag: noticed, looked into, named."""
