"""Takes snapshots of outputs while the programs run."""
