"""Public names of tf.quantization."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array_quantize import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from stoker._src.ops.array_quantize import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from stoker._src.ops.array_quantize import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from stoker._src.ops.array_quantize import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from stoker._src.ops.array_quantize import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from stoker._src.ops.array_quantize import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from stoker._src.ops.array_quantize import quantize_and_dequantize as quantize_and_dequantize
from stoker._src.ops.array_quantize import quantize_and_dequantize_v2 as quantize_and_dequantize_v2
from stoker._src.ops.nn.quantized import quantized_concat as quantized_concat
from stoker._src.ops.quantizing import dequantize as dequantize
from stoker._src.ops.quantizing import quantize as quantize
