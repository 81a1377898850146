"""The tables of TFLite's flatbuffer schema: their slots, with the kind and size of each.

The layout is derived from the schema module that LiteRT ships: its builder functions are called with a builder that writes nothing and
records the calls. Only the types of the tables behind offsets, which a builder does not reveal, are listed here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

# Table -> field -> the table it refers to, alone or as the element of a vector.
_REFERENCES = {
    "Model": {
        "OperatorCodes": "OperatorCode",
        "Subgraphs": "SubGraph",
        "Buffers": "Buffer",
        "Metadata": "Metadata",
        "SignatureDefs": "SignatureDef",
        "ExternalBufferGroups": "ExternalBufferGroup",
        "ExternalBuffers": "ExternalBuffer",
    },
    "SubGraph": {"Tensors": "Tensor", "Operators": "Operator"},
    "SignatureDef": {"Inputs": "TensorMap", "Outputs": "TensorMap"},
    "Tensor": {
        "Quantization": "QuantizationParameters",
        "Sparsity": "SparsityParameters",
        "VariantTensors": "VariantSubType",
    },
    "SparsityParameters": {"DimMetadata": "DimensionMetadata"},
}
# Table -> field -> (the enumeration that names the table, the field that holds its value).
_UNIONS = {
    "Operator": {
        "BuiltinOptions": ("BuiltinOptions", "BuiltinOptionsType"),
        "BuiltinOptions2": ("BuiltinOptions2", "BuiltinOptions2Type"),
    },
    "QuantizationParameters": {"Details": ("QuantizationDetails", "DetailsType")},
    "DimensionMetadata": {
        "ArraySegments": ("SparseIndexVector", "ArraySegmentsType"),
        "ArrayIndices": ("SparseIndexVector", "ArrayIndicesType"),
    },
}
_SCALARS = {
    "PrependBoolSlot": "<B",
    "PrependInt8Slot": "<b",
    "PrependUint8Slot": "<B",
    "PrependInt16Slot": "<h",
    "PrependUint16Slot": "<H",
    "PrependInt32Slot": "<i",
    "PrependUint32Slot": "<I",
    "PrependInt64Slot": "<q",
    "PrependUint64Slot": "<Q",
    "PrependFloat32Slot": "<f",
    "PrependFloat64Slot": "<d",
}


@dataclass(frozen=True)
class Field:
    """A slot of a table.

    Attributes:
        name: as in the schema, in camel case.
        scalar: the format of a scalar for `struct`, else "".
        default: the value of a scalar that is not stored.
        element: the bytes of an element if the field is a vector of scalars or offsets, else 0.
        table: the table that the field, or each element of the vector, refers to, else "".
        union: the enumeration of a union's tables, and the field that selects one of them.
    """

    name: str
    scalar: str = ""
    default: Any = None
    element: int = 0
    table: str = ""
    union: tuple[str, str] | None = None


class _Recorder:
    """A builder that writes nothing and records the last call."""

    request: tuple[str, tuple[Any, ...]]

    def __getattr__(self, name: str) -> Any:
        def record(*args: Any) -> int:
            self.request = (name, args)
            return 0

        return record


@functools.cache
def schema() -> Any:
    """LiteRT's generated schema module, loaded on first use."""
    from ai_edge_litert import schema_py_generated

    return schema_py_generated


@functools.cache
def layout(table: str) -> dict[int, Field]:
    """The fields of a table by slot number."""
    module, recorder, fields = schema(), _Recorder(), {}
    adders = {
        name.removeprefix(table + "Add"): function
        for name, function in vars(module).items()
        if name.startswith(table + "Add") and name[len(table) + 3].isupper()
    }
    for name, add in adders.items():
        add(recorder, 0)
        method, (slot, _, default) = recorder.request
        if method in _SCALARS:
            fields[slot] = Field(name, scalar=_SCALARS[method], default=default)
            continue
        union = _UNIONS.get(table, {}).get(name)
        start = getattr(module, f"{table}Start{name}Vector", None)
        if start is not None:
            start(recorder, 1)
        fields[slot] = Field(
            name,
            element=recorder.request[1][0] if start is not None else 0,
            table=_REFERENCES.get(table, {}).get(name, ""),
            union=union,
        )
    return fields


@functools.cache
def members(enumeration: str) -> dict[int, str]:
    """The members of an enumeration of the schema by value."""
    return {value: name for name, value in vars(getattr(schema(), enumeration)).items() if not name.startswith("_")}
