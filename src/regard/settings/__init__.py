"""Recipes: what can be set, how it is read, and what is said when it is wrong."""
