"""Plans of a machine with a GPU: recording them as CUDA graphs, fusing their kernels, and steps that the host runs faster."""
