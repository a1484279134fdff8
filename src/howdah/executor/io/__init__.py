"""Files and streams of the program: inputs, outputs, logs, directories kept in sync."""
