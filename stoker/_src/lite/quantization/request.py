"""The options of a converter that concern quantization, and the kind of quantization they select."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.lite.model import Model, Operator, Quantization, Tensor, type_of
from stoker._src.lite.options import OpsSet
from stoker._src.lite.quantization import fake_quant
from stoker._src.lite.quantization.calibration import Ranges, observe_ranges
from stoker._src.lite.quantization.forms import use_integer_forms, use_reciprocals
from stoker._src.lite.quantization.integer import quantize_integer
from stoker._src.lite.quantization.plan import Plan, QuantizationError, TrainedRange
from stoker._src.lite.quantization.schemes import INT8, INT16, UINT8, Scheme, limits
from stoker._src.lite.quantization.weights import quantize_weights, store_as_half
from stoker._src.lite.versions import without_channel_scales, without_integers

INT16_OPS = OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


@dataclass
class Request:
    """The options of a converter that concern numbers.

    Attributes:
        optimize: whether `Optimize.DEFAULT`, or one of its older names, is among the optimizations.
        supported_ops: `TargetSpec.supported_ops`.
        supported_types: `TargetSpec.supported_types`.
        representative_dataset: samples of the inputs, or None.
        inference_type: float32, or the integers of a graph that was trained with fake quantization.
        input_type, output_type: types of the model's inputs and outputs, None for the default.
        input_stats: (mean, deviation) of inputs by name: real = (quantized - mean) / deviation.
        default_ranges: (min, max) of tensors without a range.
        join_concatenations: whether the trained ranges of a concatenation's inputs and output become one.
        runtime: the oldest runtime that must have the kernels, or None.
    """

    optimize: bool = False
    supported_ops: Collection[OpsSet] = (OpsSet.TFLITE_BUILTINS,)
    supported_types: Collection[Any] = ()
    representative_dataset: Any = None
    inference_type: Any = dtypes.float32
    input_type: Any = None
    output_type: Any = None
    input_stats: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    default_ranges: tuple[float, float] | None = None
    join_concatenations: bool = False
    runtime: str | None = None

    @property
    def integers_only(self) -> bool:
        """Whether ops in floating point are not allowed."""
        supported = set(self.supported_ops)
        return bool(supported & {OpsSet.TFLITE_BUILTINS_INT8, INT16_OPS}) and not supported & {
            OpsSet.TFLITE_BUILTINS,
            OpsSet.SELECT_TF_OPS,
        }

    @property
    def scheme(self) -> Scheme:
        return INT16 if INT16_OPS in set(self.supported_ops) else INT8

    @property
    def prefers_half(self) -> bool:
        """Whether half precision is the smallest of the types that the target prefers."""
        types = {dtypes.as_dtype(each) for each in self.supported_types}
        return dtypes.float16 in types and dtypes.int8 not in types

    @property
    def to_bytes(self) -> bool:
        """Whether activations become integers of 8 bits, with ranges from samples."""
        has_samples = self.optimize and self.representative_dataset is not None
        return has_samples and self.scheme is INT8 and not self.prefers_half

    @property
    def from_training(self) -> bool:
        return dtypes.as_dtype(self.inference_type) in (dtypes.uint8, dtypes.int8)


def quantize(model: Model, request: Request) -> None:
    """Quantizes a float model as a converter was asked to. A model with FAKE_QUANT operators uses their ranges.

    Raises:
        ValueError: the options contradict each other, samples do not fit the model, or an op cannot be quantized that must be.
    """
    trained = any(operator.code == "FAKE_QUANT" for operator in model.main.operators)
    if request.from_training:
        _as_trained(model, request)
    elif not request.optimize:
        if request.integers_only:
            raise QuantizationError("For full integer quantization, a `representative_dataset` must be specified.")
        fake_quant.fold_constants(model)
        if request.input_stats:
            _integer_inputs(model, request)
        else:
            _check_float_interface(request)
    elif request.prefers_half:
        _check_float_interface(request)
        fake_quant.fold_constants(model)
        store_as_half(model)
    elif request.representative_dataset is not None or trained:
        _after_training(model, request, trained)
    elif request.integers_only or dtypes.int8 in {dtypes.as_dtype(each) for each in request.supported_types}:
        raise QuantizationError("For full integer quantization, a `representative_dataset` must be specified.")
    else:
        _check_float_interface(request)
        quantize_weights(model, request.runtime)


def _check_float_interface(request: Request) -> None:
    for wanted in (request.input_type, request.output_type):
        if wanted is not None and dtypes.as_dtype(wanted) is not dtypes.float32:
            raise QuantizationError("The inference_input_type and inference_output_type must be tf.float32.")


def _integer_inputs(model: Model, request: Request) -> None:
    """A float model with integer inputs, which it dequantizes first."""
    wanted = dtypes.float32 if request.input_type is None else dtypes.as_dtype(request.input_type)
    if wanted is dtypes.float32:
        return
    subgraph = model.main
    for place, tensor in enumerate(subgraph.inputs):
        if tensor.type != "FLOAT32":
            continue
        numbers = _input_numbers(tensor.name, request, UINT8 if wanted is dtypes.uint8 else INT8)
        given = Tensor(tensor.name, type_of(wanted), tensor.shape, None, numbers)
        tensor.name = f"{tensor.name}/float32"
        subgraph.operators.insert(0, Operator("DEQUANTIZE", [given], [tensor]))
        subgraph.inputs[place] = given
        for signature in model.signatures:
            for key, each in signature.inputs.items():
                if each is tensor:
                    signature.inputs[key] = given


def _after_training(model: Model, request: Request, trained: bool) -> None:
    scheme = request.scheme
    input_type, output_type = (
        _interface_type(name, wanted, scheme)
        for name, wanted in (
            ("inference_input_type", request.input_type),
            ("inference_output_type", request.output_type),
        )
    )
    strict = request.integers_only or dtypes.int8 in {dtypes.as_dtype(each) for each in request.supported_types}
    use_integer_forms(model, scheme, trained, strict)
    if trained:
        ranges, weights = fake_quant.take_ranges(model)
        fake_quant.spread(model.main, ranges)
        if request.join_concatenations:
            fake_quant.join_concatenations(model.main, ranges)
    else:
        ranges, weights = observe_ranges(model, request.representative_dataset), {}
        if strict:
            use_reciprocals(model, ranges)
    plan = Plan(ranges, scheme, weights, _grids(model), strict=strict, trained=trained)
    if request.runtime is not None:
        plan.one_scale = without_channel_scales(request.runtime)
        plan.floating = without_integers(request.runtime, scheme.activations)
    quantize_integer(model, plan, input_type, output_type)
    if not strict:
        # Ops that stay in floating point, such as recurrent ops, get weights in 8 bits.
        quantize_weights(model, request.runtime)


def _grids(model: Model) -> list[TrainedRange]:
    return [TrainedRange(low, high, narrow, bits) for low, high, bits, narrow in model.weight_ranges]


def _interface_type(name: str, wanted: Any, scheme: Scheme) -> str:
    if wanted is None or dtypes.as_dtype(wanted) is dtypes.float32:
        return "FLOAT32"
    allowed = ("INT16",) if scheme is INT16 else ("UINT8", "INT8")
    found = type_of(wanted)
    if found not in allowed:
        expected = ", ".join(f"'tf.{each.lower()}'" for each in allowed)
        raise QuantizationError(
            f"Unsupported `{name}` value. Expected to be in ({expected}), instead got tf.{dtypes.as_dtype(wanted).name}."
        )
    return found


def _as_trained(model: Model, request: Request) -> None:
    """A graph with fake quantization in integers throughout, as TensorFlow 1.x converted it."""
    scheme = UINT8 if dtypes.as_dtype(request.inference_type) is dtypes.uint8 else INT8
    use_integer_forms(model, scheme, trained=True)
    ranges, weights = fake_quant.take_ranges(model)
    given: dict[Any, Quantization] = {}
    for tensor in model.main.inputs:
        if tensor.type == "FLOAT32":
            given[tensor] = _input_numbers(tensor.name, request, scheme)
            ranges.setdefault(tensor, (0.0, 0.0))
    fake_quant.spread(model.main, ranges)
    _fill_in(model, ranges, request.default_ranges)
    if request.join_concatenations:
        fake_quant.join_concatenations(model.main, ranges)
    input_type = scheme.activations if request.input_type is None else type_of(request.input_type)
    output_type = scheme.activations if request.output_type is None else type_of(request.output_type)
    plan = Plan(ranges, scheme, weights, _grids(model), given, strict=True, trained=True)
    quantize_integer(model, plan, input_type, output_type)


def _input_numbers(name: str, request: Request, scheme: Scheme) -> Quantization:
    if name not in request.input_stats:
        raise QuantizationError(f"Quantization input stats are not available for input tensors '{name}'.")
    mean, deviation = _pair(f"The statistics of the input '{name}' are", request.input_stats[name])
    if not deviation > 0:
        raise QuantizationError(f"The deviation of the input '{name}' is {deviation}, which is not positive.")
    wanted = scheme.activations if request.input_type is None else type_of(request.input_type)
    # The statistics describe the input as passed by the caller.
    smallest, largest = limits(wanted) if wanted in ("INT8", "UINT8") else limits(scheme.activations)
    if not smallest <= round(mean) <= largest:
        raise QuantizationError(
            f"The mean of the input '{name}' is {mean:g}. It is the number that stands for zero, from {smallest} to {largest} in {wanted}."
        )
    shift = {("UINT8", "INT8"): -128, ("INT8", "UINT8"): 128}.get((wanted, scheme.activations), 0)
    return Quantization(np.array([1 / deviation], np.float32), np.array([round(mean) + shift], np.int64))


def _pair(what: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise QuantizationError(f"{what} two numbers, found {value!r}.")
    return float(value[0]), float(value[1])


def _fill_in(model: Model, ranges: Ranges, default: tuple[float, float] | None) -> None:
    left = fake_quant.missing(model.main, ranges)
    if left and default is None:
        tensor, code = left[0]
        raise QuantizationError(
            f"Array {tensor.name}, which is an input or output of the {code} operator, is lacking min/max data, which is necessary for "
            "quantization. If accuracy matters, either target a non-quantized output format, or run quantized training with your model "
            "from a floating point checkpoint to change the input graph to contain min/max information. If you don't care about "
            f"accuracy, you can pass default_ranges_stats for easy experimentation. ({len(left)} tensors have no range.)"
        )
    for tensor, _ in left:
        ranges[tensor] = _pair("default_ranges_stats are", default)
