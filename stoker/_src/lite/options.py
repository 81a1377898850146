"""Option types of the converter: the allowed ops, the optimizations and the calibration data."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant

# `tf.lite.constants`, which exists in 1.x only.
FLOAT = dtypes.float32
FLOAT16 = dtypes.float16
INT8 = dtypes.int8
INT16 = dtypes.int16
INT32 = dtypes.int32
INT64 = dtypes.int64
STRING = dtypes.string
QUANTIZED_UINT8 = dtypes.uint8
TFLITE = 2
GRAPHVIZ_DOT = 3

for _name in (
    "FLOAT",
    "FLOAT16",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "QUANTIZED_UINT8",
    "TFLITE",
    "GRAPHVIZ_DOT",
):
    export_constant(__name__, _name, v1=f"lite.constants.{_name}")


class _Option(enum.Enum):
    """An enumeration whose members print as their values, like TensorFlow's."""

    def __str__(self) -> str:
        return str(self.value)


def listed(setting: str, values: Any, kind: type[enum.Enum]) -> set[Any]:
    """The members of an enumeration that a setting holds.

    Raises:
        ValueError: it holds something else, or is no collection.
    """
    name = f"tf.lite.{kind.__name__}"
    if isinstance(values, (str, enum.Enum)) or not isinstance(values, Iterable):
        raise ValueError(f"{setting} must be a list or a set of {name} values, found {values!r}.")
    found = list(values)
    wrong = [each for each in found if not isinstance(each, kind)]
    if wrong:
        raise ValueError(f"{setting} must hold {name} values, found {wrong[0]!r}.")
    return set(found)


def listed_types(values: Any) -> set[dtypes.DType]:
    """The types of `target_spec.supported_types`.

    Raises:
        ValueError: it holds what is no type of constants in TFLite, or is no collection.
    """
    if isinstance(values, (str, type, dtypes.DType)) or not isinstance(values, Iterable):
        raise ValueError(
            f"target_spec.supported_types must be a list or a set of types such as tf.float16, found {values!r}."
        )
    found = set()
    for each in values:
        try:
            found.add(dtypes.as_dtype(each))
        except TypeError as error:
            raise ValueError(
                f"target_spec.supported_types must hold types such as tf.float16, found {each!r}."
            ) from error
    wrong = found - {FLOAT, FLOAT16, INT8, INT16, INT32, INT64, STRING, QUANTIZED_UINT8}
    if wrong:
        raise ValueError(f"target_spec.supported_types has {wrong.pop()!r}, which is no type of constants in TFLite.")
    return found


@export("lite.OpsSet")
class OpsSet(_Option):
    """The sets of ops that a converted model may use.

    `TFLITE_BUILTINS` are the ops of the TFLite runtime. `SELECT_TF_OPS` adds TensorFlow's own kernels, which need a runtime that
    is linked with them. `TFLITE_BUILTINS_INT8` allows only builtins with int8 arguments: ops that cannot be quantized are errors.
    The member that starts with `EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS` quantizes activations to 16 bits and weights to 8.
    """

    TFLITE_BUILTINS = "TFLITE_BUILTINS"
    SELECT_TF_OPS = "SELECT_TF_OPS"
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = (
        "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    )
    EXPERIMENTAL_STABLEHLO_OPS = "EXPERIMENTAL_STABLEHLO_OPS"

    @staticmethod
    def get_options() -> list[str]:
        """The names of all members, in order."""
        return [str(option) for option in OpsSet]


@export("lite.Optimize")
class Optimize(_Option):
    """How a model is optimized. Optimizations may cost accuracy.

    `DEFAULT` quantizes: to the types in `TargetSpec.supported_types`, to integers if there is a representative dataset, or otherwise only
    the weights. The two older members mean the same.
    """

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"
    EXPERIMENTAL_SPARSITY = "EXPERIMENTAL_SPARSITY"


@export("lite.RepresentativeDataset")
class RepresentativeDataset:
    """Samples of a model's inputs, from which the converter learns the range of every tensor.

    Args:
        input_gen: a callable without arguments that returns an iterable (a generator function, for example). Each element is a
            list with one array per input, of its type and shape, or a dictionary from input names to arrays. For a model with several
            signatures it is a pair of a signature's key and such a list or dictionary.
    """

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        self.input_gen = input_gen

    def __repr__(self) -> str:
        return f"RepresentativeDataset({self.input_gen!r})"


@export("lite.TargetSpec")
class TargetSpec:
    """The capabilities of the target device.

    Attributes:
        supported_ops: set of `OpsSet`, by default `{OpsSet.TFLITE_BUILTINS}`.
        supported_types: dtypes of constants that the device prefers. Empty means all; `{tf.float16}` with `Optimize.DEFAULT`
            stores weights in half precision.
        experimental_select_user_tf_ops: names of the user's own TensorFlow ops that `SELECT_TF_OPS` may keep.
        experimental_supported_backends: names of the delegates that the model must suit, or None.
        min_runtime_version: the oldest runtime that must run the model, such as "1.15.0". Builtins that it does not have are composed of older
            ones, which may be slower. None is the LiteRT that comes with stoker. It is no attribute in TensorFlow, and no argument.
    """

    def __init__(
        self,
        supported_ops: Iterable[OpsSet] | None = None,
        supported_types: Iterable[dtypes.DType] | None = None,
        experimental_select_user_tf_ops: Iterable[str] | None = None,
        experimental_supported_backends: Iterable[str] | None = None,
    ) -> None:
        self.supported_ops: Any = {OpsSet.TFLITE_BUILTINS} if supported_ops is None else supported_ops
        self.supported_types: Any = set() if supported_types is None else supported_types
        self.experimental_select_user_tf_ops: Any = (
            set() if experimental_select_user_tf_ops is None else experimental_select_user_tf_ops
        )
        self.experimental_supported_backends = experimental_supported_backends
        self.min_runtime_version: str | None = None

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value)
        return f"TargetSpec({fields})"
