"""What a browser gets: a page that renders `fold(events)`, live from the master."""
