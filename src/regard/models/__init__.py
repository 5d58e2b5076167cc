"""One file a task; `build` turns settings into a model."""
