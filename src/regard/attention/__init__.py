"""Attention in three steps: scores -> weights -> context."""
