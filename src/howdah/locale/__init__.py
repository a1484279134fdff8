"""Translates into Chinese what the command line, the server and the page say."""
