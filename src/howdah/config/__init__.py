"""What users write down: settings, profiles, job files and their variables."""
