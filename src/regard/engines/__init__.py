"""What searches for outputs: the reference in torch, and faster ones, behind one interface."""
