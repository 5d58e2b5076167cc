"""Batches of like length under a token budget, in a seeded order that resumes exactly."""
