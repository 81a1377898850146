"""The older names of the converter, `TocoConverter` and `toco_convert`, and the list of ops that it supports."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.lite.convert import supported_types
from stoker._src.lite.converter import TFLiteConverter
from stoker._src.lite.options import TFLITE

SupportedOp = namedtuple("SupportedOp", ["op"])


@export(v1="lite.TocoConverter")
class TocoConverter:
    """The older name of `TFLiteConverter`. Its class methods return a `TFLiteConverter`."""

    @classmethod
    @deprecated(None, "Use `lite.TFLiteConverter.from_session` instead.")
    def from_session(cls, sess: Any, input_tensors: Any, output_tensors: Any) -> TFLiteConverter:
        """See `TFLiteConverter.from_session`."""
        return TFLiteConverter.from_session(sess, input_tensors, output_tensors)

    @classmethod
    @deprecated(None, "Use `lite.TFLiteConverter.from_frozen_graph` instead.")
    def from_frozen_graph(
        cls, graph_def_file: Any, input_arrays: Any, output_arrays: Any, input_shapes: Any = None
    ) -> TFLiteConverter:
        """See `TFLiteConverter.from_frozen_graph`."""
        return TFLiteConverter.from_frozen_graph(graph_def_file, input_arrays, output_arrays, input_shapes)

    @classmethod
    @deprecated(None, "Use `lite.TFLiteConverter.from_saved_model` instead.")
    def from_saved_model(
        cls,
        saved_model_dir: Any,
        input_arrays: Any = None,
        input_shapes: Any = None,
        output_arrays: Any = None,
        tag_set: Any = None,
        signature_key: Any = None,
    ) -> TFLiteConverter:
        """See `TFLiteConverter.from_saved_model`."""
        return TFLiteConverter.from_saved_model(
            saved_model_dir, input_arrays, input_shapes, output_arrays, tag_set, signature_key
        )

    @classmethod
    @deprecated(None, "Use `lite.TFLiteConverter.from_keras_model_file` instead.")
    def from_keras_model_file(
        cls, model_file: Any, input_arrays: Any = None, input_shapes: Any = None, output_arrays: Any = None
    ) -> TFLiteConverter:
        """See `TFLiteConverter.from_keras_model_file`."""
        return TFLiteConverter.from_keras_model_file(model_file, input_arrays, input_shapes, output_arrays)


# The parameters of `toco_convert` after the first three, in this order.
_SETTINGS: dict[str, Any] = {
    "inference_type": dtypes.float32,
    "inference_input_type": None,
    "input_format": None,
    "input_shapes": None,
    "output_format": TFLITE,
    "quantized_input_stats": None,
    "default_ranges_stats": None,
    "drop_control_dependency": True,
    "reorder_across_fake_quant": False,
    "allow_custom_ops": False,
    "custom_opdefs": None,
    "change_concat_input_ranges": False,
    "post_training_quantize": False,
    "quantize_to_float16": False,
    "dump_graphviz_dir": None,
    "dump_graphviz_video": False,
    "target_ops": None,
    "allow_nonexistent_arrays": False,
    "debug_info": None,
}
# Settings that have the same name in the converter.
_SAME = (
    "inference_type",
    "inference_input_type",
    "output_format",
    "default_ranges_stats",
    "drop_control_dependency",
    "reorder_across_fake_quant",
    "allow_custom_ops",
    "change_concat_input_ranges",
    "dump_graphviz_dir",
    "dump_graphviz_video",
)


@export(v1="lite.toco_convert")
@deprecated(None, "Use `lite.TFLiteConverter` instead.")
def toco_convert(input_data: Any, input_tensors: Any, output_tensors: Any, *args: Any, **kwargs: Any) -> bytes:
    """Converts a frozen GraphDef.

    Args:
        input_data: the GraphDef.
        input_tensors: its inputs. Their shapes and types are used.
        output_tensors: its outputs. Only their names are used.
        *args, **kwargs: settings of `TFLiteConverter` of the same names, in the order inference_type, inference_input_type, input_format,
            input_shapes (a list of shapes), output_format, quantized_input_stats (a list of (mean, deviation)), default_ranges_stats,
            drop_control_dependency, reorder_across_fake_quant, allow_custom_ops, custom_opdefs, change_concat_input_ranges,
            post_training_quantize, quantize_to_float16, dump_graphviz_dir, dump_graphviz_video, target_ops.

    Raises:
        TypeError: a setting is unknown.
        ValueError: a setting has a value that cannot be honoured.
    """
    if len(args) > len(_SETTINGS):
        raise TypeError(f"toco_convert() takes at most {3 + len(_SETTINGS)} positional arguments.")
    given = dict(zip(_SETTINGS, args, strict=False))
    for name, value in kwargs.items():
        if name not in _SETTINGS:
            raise TypeError(f"toco_convert() got an unexpected keyword argument '{name}'")
        if name in given:
            raise TypeError(f"toco_convert() got multiple values for argument '{name}'")
        given[name] = value
    settings = {**_SETTINGS, **given}
    for name in ("custom_opdefs", "allow_nonexistent_arrays", "quantize_to_float16"):
        if settings[name]:
            raise ValueError(f"toco_convert cannot honour {name}={settings[name]!r}.")
    converter = TFLiteConverter(input_data, input_tensors, output_tensors)
    for name in _SAME:
        setattr(converter, name, settings[name])
    names = converter.get_input_arrays()
    if settings["quantized_input_stats"]:
        converter.quantized_input_stats = dict(zip(names, settings["quantized_input_stats"], strict=True))
    if settings["input_shapes"]:
        for tensor, shape in zip(input_tensors, settings["input_shapes"], strict=True):
            if shape is not None and not tensor.shape.is_compatible_with(shape):
                raise ValueError(f"The input '{tensor.name}' has the shape {tensor.shape}, not {list(shape)}.")
    if settings["target_ops"]:
        converter.target_spec.supported_ops = set(settings["target_ops"])
    if settings["post_training_quantize"]:
        converter.post_training_quantize = True
    return converter.convert()


@export(v1="lite.experimental.get_potentially_supported_ops")
def get_potentially_supported_ops() -> list[SupportedOp]:
    """The ops that the converter supports, by name only. Whether a node can be converted also depends on its attributes and shapes."""
    return [SupportedOp(name) for name in supported_types()]
