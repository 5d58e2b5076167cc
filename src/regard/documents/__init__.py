"""Files of any size and format through a translator."""
