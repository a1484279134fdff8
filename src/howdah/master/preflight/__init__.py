"""Pre-flight: which containers passed the checks before programs start, and which node is to blame for a failure."""
