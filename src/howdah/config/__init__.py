"""Files and options that users write: settings, profiles, job files and their variables."""
