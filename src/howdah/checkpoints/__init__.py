"""A program's checkpoints: found, validated, locked to one job, and kept the same here and on shared storage."""
