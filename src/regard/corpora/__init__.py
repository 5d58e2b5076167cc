"""Corpora: readers of what people have, and the corpora that come built in."""
