"""Training: loss, schedule, the one update, the loop, checkpoints. It never asks which model."""
