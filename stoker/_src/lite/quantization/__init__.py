"""Quantization of TFLite models: weights alone, half precision, or all arithmetic in integers."""
