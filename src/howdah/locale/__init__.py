"""The Chinese of what the command line, the server and the page say."""
