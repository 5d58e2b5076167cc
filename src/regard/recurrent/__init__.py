"""Recurrent networks: cells, encoder and decoder."""
