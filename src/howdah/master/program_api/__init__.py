"""What programs ask of the master (`howdah.program`): shared values, barriers, metrics, snapshots."""
