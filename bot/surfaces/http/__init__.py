"""The HTTP server's pages: the API, health, metrics, captured files."""
