"""The former location of modules that programs import; kept so that their imports still work."""
