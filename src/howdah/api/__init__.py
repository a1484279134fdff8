"""The server of the page: an answer renders `fold(events)`, live from the master."""
