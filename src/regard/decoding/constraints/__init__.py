"""What an output must hold and must not hold, kept at every step of a search."""
