"""Recipes: their settings, how they are read, and the messages for wrong ones."""
