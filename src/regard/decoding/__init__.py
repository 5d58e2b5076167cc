"""Search for the best output through the step protocol, whatever the model."""
