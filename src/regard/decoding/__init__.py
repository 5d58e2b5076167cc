"""Search for the best output, over the step protocol alone: it never asks what kind of model."""
