"""Documents whose text is to be translated and whose rest stays as it is: one file a format."""
