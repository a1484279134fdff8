"""The earlier place of modules that programs import."""
