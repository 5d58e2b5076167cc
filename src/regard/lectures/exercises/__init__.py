"""Exercises: write a part of an attention model; a check names the mistake it finds."""
