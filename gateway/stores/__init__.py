"""Where state lives between requests."""
