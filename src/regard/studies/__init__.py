"""What compares or dissects models: comparisons, ladder, gradients, positions."""
