"""Formats of documents: what is translated is found, everything else stays as it is."""
