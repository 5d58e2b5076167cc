"""Shape vocabulary, errors, the few Protocols and the result types that every room shares."""
