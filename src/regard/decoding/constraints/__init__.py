"""Constraints on outputs: prefixes, required and forbidden phrases, in every kind of search."""
