"""Where and how numbers are made: devices, precision, kernels, memory and processes."""
