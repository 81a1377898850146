"""TFLite: the converter, its options and the interpreter."""
