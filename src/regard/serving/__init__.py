"""The HTTP server: a page to play with, an API that clients know, and views of attention."""
