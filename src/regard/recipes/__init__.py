"""Where the parts meet: shipped recipes, and the functions that train, load and evaluate."""
