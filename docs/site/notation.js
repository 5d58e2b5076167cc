// The notation of equations is chosen in the guide.
