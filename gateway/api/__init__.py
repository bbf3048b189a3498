"""The HTTP surfaces: pure ASGI, one file each, joined by the ROUTES table."""
