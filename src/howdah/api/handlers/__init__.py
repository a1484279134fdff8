"""The handlers of the API, by subject."""
