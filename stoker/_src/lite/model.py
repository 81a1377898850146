"""A TFLite model in memory: what passes transform, `flatbuffer` reads and writes, and reports show.

Operators refer to their tensors directly, not by index. A rewrite replaces an operator in `Subgraph.operators` or a tensor in an
operator's inputs; which tensors a subgraph has follows from that, and so do indices, buffers and operator codes, when the model is written.

Type and operator names are those of the TFLite schema: "FLOAT32", "CONV_2D". An operator's options are the schema's own object
(`Conv2DOptionsT`), so their attributes are spelled as there (`strideW`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.base import dtypes

TYPE_CODES: dict[str, int] = {name: code for name, code in vars(schema.TensorType).items() if not name.startswith("_")}
TYPE_NAMES: dict[int, str] = {code: name for name, code in TYPE_CODES.items()}
OPERATOR_CODES: dict[str, int] = {
    name: code for name, code in vars(schema.BuiltinOperator).items() if not name.startswith("_")
}
OPERATOR_NAMES: dict[int, str] = {code: name for name, code in OPERATOR_CODES.items()}

_NUMPY = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT64": np.float64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
    "COMPLEX128": np.complex128,
    "STRING": np.object_,
}
# Types that share a byte between elements, or have no array form: their constants are kept as the bytes of the buffer.
_BY_DTYPE = {dtypes.as_dtype(numpy): name for name, numpy in _NUMPY.items()} | {
    dtypes.resource: "RESOURCE",
    dtypes.variant: "VARIANT",
}


def type_of(dtype: Any) -> str:
    """The schema's name of a dtype: "FLOAT32" for tf.float32. Quantized dtypes are named by their storage.

    Raises:
      ValueError: TFLite has no such type.
    """
    dtype = dtypes.as_dtype(dtype).base_dtype
    if dtype in dtypes.QUANTIZED_DTYPES:
        dtype = dtypes.as_dtype(dtype.as_numpy_dtype)
    name = _BY_DTYPE.get(dtype)
    if name is None:
        raise ValueError(f"TFLite has no tensor type for {dtype.name}.")
    return name


def numpy_dtype(type_name: str) -> np.dtype[Any] | None:
    """The NumPy dtype of a tensor type, or None if its elements are not whole bytes (INT4) or have no value (RESOURCE)."""
    found = _NUMPY.get(type_name)
    return None if found is None else np.dtype(found)


@dataclass(eq=False)
class Quantization:
    """real = scale * (stored - zero_point), for the whole tensor or for each slice along `axis`.

    `minimum` and `maximum` are the observed or requested range of real values. They describe a tensor that is not quantized yet.
    """

    scale: np.ndarray | None = None
    zero_point: np.ndarray | None = None
    axis: int = 0
    minimum: np.ndarray | None = None
    maximum: np.ndarray | None = None
    details: Any = None  # CustomQuantizationT, BlockwiseQuantizationT, ...: kept as read
    details_type: int = 0

    @property
    def per_channel(self) -> bool:
        return self.scale is not None and len(self.scale) > 1


@dataclass(eq=False)
class Tensor:
    """A value of a subgraph: an input, a constant (`data` is set) or the result of an operator.

    `shape` has -1 for sizes that are known only at run time, and is None if the rank is unknown. `data` of a
    constant is an array of `numpy_dtype(type)`; of STRING tensors an object array of bytes; of types without a NumPy dtype the
    uint8 bytes of the buffer.
    """

    name: str
    type: str = "FLOAT32"
    shape: tuple[int, ...] | None = ()
    data: np.ndarray | None = None
    quantization: Quantization | None = None
    is_variable: bool = False
    sparsity: Any = None  # SparsityParametersT: kept as read
    variant_tensors: Any = None

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape with 1 for each unknown size, as stored in the plain `shape` field of a file."""
        return tuple(max(size, 1) if size < 0 else size for size in self.shape or ())

    @property
    def byte_size(self) -> int:
        """The number of bytes of the constant's buffer, or 0 if the tensor is not a constant."""
        if self.data is None:
            return 0
        return len(string_buffer(self.data)) if self.data.dtype == object else self.data.nbytes


@dataclass(eq=False)
class Operator:
    """One step of a subgraph: a builtin ("CONV_2D"), or "CUSTOM" with `custom_code`.

    An omitted input is None. `subgraphs` are the subgraphs that an IF, WHILE or CALL_ONCE refers to, in the order of its
    options (then, else; condition, body; init); the indices in `options` follow from them when the model is written.
    """

    code: str
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    options: Any = None
    version: int = 1
    custom_code: str = ""
    custom_options: bytes = b""
    intermediates: list[Tensor] = field(default_factory=list)
    mutating_variable_inputs: list[bool] = field(default_factory=list)
    subgraphs: list[Subgraph] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The builtin's name, or the custom code of a custom operator."""
        return self.custom_code if self.code == "CUSTOM" else self.code

    @property
    def is_select(self) -> bool:
        """Whether the operator runs TensorFlow's own kernel ("FlexErf")."""
        return self.code == "CUSTOM" and self.custom_code.startswith("Flex")


@dataclass(eq=False)
class Subgraph:
    name: str = "main"
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor once: inputs, then in the order of the operators, constants before results."""
        found: dict[Tensor, None] = dict.fromkeys(self.inputs)
        for operator in self.operators:
            found.update((each, None) for each in operator.inputs if each is not None)
            found.update(dict.fromkeys(operator.intermediates))
            found.update(dict.fromkeys(operator.outputs))
        found.update(dict.fromkeys(self.outputs))
        return list(found)

    def consumers(self) -> dict[Tensor, list[Operator]]:
        """The operators that read each tensor, once for each input that does."""
        found: dict[Tensor, list[Operator]] = {}
        for operator in self.operators:
            for each in operator.inputs:
                if each is not None:
                    found.setdefault(each, []).append(operator)
        return found

    def producers(self) -> dict[Tensor, Operator]:
        return {each: operator for operator in self.operators for each in operator.outputs}


@dataclass(eq=False)
class Signature:
    """A named entry point: its inputs and outputs by the names that callers use."""

    key: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    subgraph: Subgraph


@dataclass(eq=False)
class Model:
    """Subgraphs (the first is the model's entry), the names callers use for them, and free metadata by name."""

    subgraphs: list[Subgraph]
    signatures: list[Signature] = field(default_factory=list)
    metadata: dict[str, bytes] = field(default_factory=dict)
    description: str = ""
    weight_ranges: list[tuple[float, float, int, bool]] = field(default_factory=list)
    """(min, max, bits, narrow) of the fake quantization that was applied to constants. It is not written to files."""

    @property
    def main(self) -> Subgraph:
        return self.subgraphs[0]

    @property
    def entries(self) -> list[Subgraph]:
        """The subgraphs that callers run: the main one, and those of the signatures."""
        return list(dict.fromkeys([self.main, *(signature.subgraph for signature in self.signatures)]))

    def operators(self) -> Iterator[Operator]:
        for subgraph in self.subgraphs:
            yield from subgraph.operators

    def operator_counts(self) -> Counter[str]:
        return Counter(operator.kind for operator in self.operators())


def string_buffer(values: np.ndarray | Sequence[bytes]) -> bytes:
    """Strings as TFLite stores them: their count, the offset of each and of the end, then the bytes."""
    strings = [
        value if isinstance(value, bytes) else str(value).encode() for value in np.asarray(values, object).ravel()
    ]
    ends = np.cumsum([0, *map(len, strings)]) + 4 * (len(strings) + 2)
    return np.array([len(strings), *ends], np.int32).tobytes() + b"".join(strings)


def strings_of(buffer: bytes) -> list[bytes]:
    """The strings of a buffer in TFLite's layout.

    Raises:
      ValueError: The offsets do not fit the buffer.
    """
    if len(buffer) < 4:
        raise ValueError(f"A string buffer of {len(buffer)} bytes has no count.")
    count = int(np.frombuffer(buffer, "<i4", 1)[0])
    if not 0 <= count <= len(buffer) // 4 - 2:
        raise ValueError(f"A string buffer of {len(buffer)} bytes cannot hold {count} strings.")
    offsets = np.frombuffer(buffer, "<i4", count + 1, 4)
    if offsets[0] < 4 * (count + 2) or offsets[-1] > len(buffer) or (np.diff(offsets) < 0).any():
        raise ValueError(f"The offsets of {count} strings do not fit their buffer of {len(buffer)} bytes.")
    return [bytes(buffer[start:end]) for start, end in itertools.pairwise(offsets)]
