"""`python -m stoker convert SOURCE model.tflite`: a SavedModel or a frozen graph to a TFLite model, with the options of tflite_convert."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path
from typing import Any

from stoker._src.formats import atomic, gfile

TITLE = "TFLite models"
_TYPES = ("FLOAT", "QUANTIZED_UINT8", "INT8")


_SOURCES = ("saved_model_dir", "graph_def_file", "keras_model_file")


def name_paths(args: argparse.Namespace) -> None:
    """Takes source and target from the options that tflite_convert has for them."""
    named = [name for name in _SOURCES if getattr(args, name) is not None]
    if len(named) + (args.source is not None and args.target is not None) > 1:
        args.usage_error("SOURCE, --saved_model_dir, --graph_def_file and --keras_model_file exclude each other")
    if named:
        # A path that stands alone is then the target.
        args.target = args.source if args.target is None else args.target
        args.source = getattr(args, named[0])
    if args.output_file is not None:
        if args.target is not None:
            args.usage_error("TARGET and --output_file exclude each other")
        args.target = args.output_file


def takes(args: argparse.Namespace) -> bool:
    named = any(getattr(args, name) is not None for name in _SOURCES)
    return named or args.output_file is not None or args.target.endswith((".tflite", ".lite", ".dot"))


def add_options(group: Any) -> None:
    flag = argparse.BooleanOptionalAction
    group.add_argument("--saved_model_dir", metavar="FOLDER", help="a SavedModel, in place of SOURCE")
    group.add_argument("--graph_def_file", metavar="FILE", help="a frozen graph, in place of SOURCE")
    group.add_argument("--keras_model_file", metavar="FILE", help="a Keras model, in place of SOURCE")
    group.add_argument("--output_file", metavar="FILE", help="the file to write, in place of TARGET")
    group.add_argument(
        "--input_arrays",
        metavar="NAMES",
        help="tensors to feed, separated by commas; those of the signature by default",
    )
    group.add_argument("--output_arrays", metavar="NAMES", help="tensors to fetch, likewise")
    group.add_argument(
        "--input_shapes", metavar="SHAPES", help="shapes of the inputs, separated by colons: 1,224,224,3:1,10"
    )
    group.add_argument(
        "--saved_model_tag_set", default="serve", metavar="TAGS", help="tags of the meta graph (default: serve)"
    )
    group.add_argument("--saved_model_signature_key", metavar="KEY", help="the signature (default: serving_default)")
    group.add_argument("--output_format", choices=("TFLITE", "GRAPHVIZ_DOT"), help="by default what TARGET ends in")
    group.add_argument("--inference_type", choices=_TYPES, default="FLOAT", help="type of real numbers in the model")
    group.add_argument("--inference_input_type", choices=_TYPES, help="type of the inputs")
    group.add_argument("--inference_output_type", choices=_TYPES, help="type of the outputs")
    group.add_argument("--mean_values", metavar="NUMBERS", help="mean of each quantized input, separated by commas")
    group.add_argument("--std_dev_values", metavar="NUMBERS", help="standard deviation of each quantized input")
    group.add_argument(
        "--default_ranges_min", type=float, metavar="NUMBER", help="lowest value of tensors without a range"
    )
    group.add_argument(
        "--default_ranges_max", type=float, metavar="NUMBER", help="highest value of tensors without a range"
    )
    group.add_argument(
        "--post_training_quantize", "--quantize_weights", action="store_true", help="store weights in 8 bits"
    )
    group.add_argument("--quantize_to_float16", action="store_true", help="store weights in half precision")
    group.add_argument(
        "--drop_control_dependency", action=flag, default=True, help="leave control dependencies out silently"
    )
    group.add_argument(
        "--reorder_across_fake_quant", action="store_true", help="let transformations move fake quantization"
    )
    group.add_argument(
        "--change_concat_input_ranges",
        nargs="?",
        const="TRUE",
        default="FALSE",
        type=str.upper,
        choices=("TRUE", "FALSE"),
        help="one range for the inputs of a concatenation",
    )
    group.add_argument("--allow_custom_ops", action="store_true", help="make ops without a builtin custom ops")
    group.add_argument(
        "--target_ops",
        default="TFLITE_BUILTINS",
        metavar="SETS",
        help="sets of ops, separated by commas: TFLITE_BUILTINS, SELECT_TF_OPS",
    )
    group.add_argument(
        "--min_runtime_version",
        metavar="VERSION",
        help="the oldest TensorFlow Lite that must run the model, 1.15.0 or younger; by default the LiteRT of this installation",
    )
    group.add_argument(
        "--dump_graphviz_dir", metavar="FOLDER", help="a folder for pictures of the model before and after"
    )
    group.add_argument("--dump_graphviz_video", action="store_true", help="a picture after each transformation")
    for name in ("enable_v1_converter", "experimental_new_converter", "experimental_new_quantizer"):
        group.add_argument(f"--{name}", nargs="?", const="true", help="accepted for scripts, without effect")


def convert(args: argparse.Namespace) -> None:
    """Converts, and writes the file as a whole or not at all.

    Raises:
      ValueError: The model cannot be converted, or options contradict each other.
      OSError: There is no such model.
    """
    # Imported on demand because they load torch.
    lite = importlib.import_module("stoker._src.lite.converter")
    options = importlib.import_module("stoker._src.lite.options")
    convert_module = importlib.import_module("stoker._src.lite.convert")
    converter = _converter(lite, args)
    _apply(converter, options, args)
    try:
        data = converter.convert()
    except convert_module.ConverterError as error:
        raise ValueError(str(error)) from error
    atomic.write(Path(args.target), data)
    print(f"{len(data):,} bytes written to {args.target}")


def _converter(lite: Any, args: argparse.Namespace) -> Any:
    inputs, outputs = _names(args.input_arrays), _names(args.output_arrays)
    shapes = _shapes(args.input_shapes, inputs)
    if not gfile.exists(args.source):
        raise OSError(f"'{args.source}' does not exist.")
    if args.saved_model_dir is not None or (os.path.isdir(args.source) and args.graph_def_file is None):
        tags = set(_names(args.saved_model_tag_set) or ())
        try:
            return lite.TFLiteConverter.from_saved_model(
                args.source, inputs, shapes, outputs, tags, args.saved_model_signature_key
            )
        except RuntimeError as error:  # no meta graph has these tags
            raise ValueError(str(error)) from error
    if args.keras_model_file is not None or args.source.endswith((".h5", ".hdf5", ".keras")):
        try:
            return lite.TFLiteConverter.from_keras_model_file(args.source, inputs, shapes, outputs)
        except ImportError as error:
            raise ValueError(str(error)) from error
    if inputs is None or outputs is None:
        raise ValueError("--input_arrays and --output_arrays are required for a frozen graph.")
    return lite.TFLiteConverter.from_frozen_graph(args.source, inputs, outputs, shapes)


def _apply(converter: Any, options: Any, args: argparse.Namespace) -> None:
    types = {"FLOAT": options.FLOAT, "QUANTIZED_UINT8": options.QUANTIZED_UINT8, "INT8": options.INT8}
    picture = args.output_format == "GRAPHVIZ_DOT" or (args.output_format is None and args.target.endswith(".dot"))
    converter.output_format = options.GRAPHVIZ_DOT if picture else options.TFLITE
    converter.inference_type = types[args.inference_type]
    for name in ("inference_input_type", "inference_output_type"):
        if getattr(args, name) is not None:
            setattr(converter, name, types[getattr(args, name)])
    for name in (
        "drop_control_dependency",
        "reorder_across_fake_quant",
        "allow_custom_ops",
        "dump_graphviz_dir",
        "dump_graphviz_video",
    ):
        setattr(converter, name, getattr(args, name))
    converter.change_concat_input_ranges = args.change_concat_input_ranges == "TRUE"
    converter.quantized_input_stats = _stats(converter.get_input_arrays(), args)
    if (args.default_ranges_min is None) != (args.default_ranges_max is None):
        raise ValueError("--default_ranges_min and --default_ranges_max must be used together.")
    if args.default_ranges_min is not None:
        converter.default_ranges_stats = (args.default_ranges_min, args.default_ranges_max)
    if args.post_training_quantize or args.quantize_to_float16:
        converter.optimizations = [options.Optimize.DEFAULT]
    if args.quantize_to_float16:
        converter.target_spec.supported_types = {options.FLOAT16}
    converter.target_spec.min_runtime_version = args.min_runtime_version
    known = options.OpsSet.get_options()
    for each in _names(args.target_ops) or ():
        if each not in known:
            raise ValueError(f"Invalid value for --target_ops: {each}. Options: {','.join(known)}")
    converter.target_spec.supported_ops = {options.OpsSet(each) for each in _names(args.target_ops) or ()}


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [each.strip() for each in text.split(",") if each.strip()]


def _shapes(text: str | None, inputs: list[str] | None) -> dict[str, list[int]] | None:
    if text is None:
        return None
    if inputs is None:
        raise ValueError("--input_shapes must be used with --input_arrays.")
    try:
        shapes = [[int(size) for size in each.split(",") if size.strip()] for each in text.split(":")]
    except ValueError:
        raise ValueError(f"--input_shapes {text!r} is not a list of shapes such as 1,224,224,3:1,10.") from None
    if len(shapes) != len(inputs):
        raise ValueError(
            f"--input_shapes and --input_arrays must have the same length: {len(shapes)} and {len(inputs)}."
        )
    return dict(zip(inputs, shapes, strict=True))


def _stats(inputs: list[str], args: argparse.Namespace) -> dict[str, tuple[float, float]]:
    if (args.mean_values is None) != (args.std_dev_values is None):
        raise ValueError("--std_dev_values and --mean_values must be used together.")
    if args.mean_values is None:
        return {}
    try:
        means, deviations = (
            [float(each) for each in text.split(",")] for text in (args.mean_values, args.std_dev_values)
        )
    except ValueError as error:
        raise ValueError(f"--mean_values and --std_dev_values are numbers separated by commas: {error}") from error
    if not len(means) == len(deviations) == len(inputs):
        raise ValueError(
            f"--std_dev_values and --mean_values must have a number for each of the {len(inputs)} inputs: {len(deviations)} and {len(means)}."
        )
    return dict(zip(inputs, zip(means, deviations, strict=True), strict=True))
