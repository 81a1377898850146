"""What kernels and op definitions share: the values that flow, moving elements, unsigned integers, waiting."""
