"""How ops become TFLite builtins, by family. Importing the package registers all of them."""

from stoker._src.lite.builtins import (
    alternatives,
    arrays,
    control_flow,
    convolutions,
    elementwise,
    images,
    indexing,
    lists,
    networks,
    passing,
    products,
    random,
    reductions,
    resources,
    segments,
    signal,
)

__all__ = [
    "alternatives",
    "arrays",
    "control_flow",
    "convolutions",
    "elementwise",
    "images",
    "indexing",
    "lists",
    "networks",
    "passing",
    "products",
    "random",
    "reductions",
    "resources",
    "segments",
    "signal",
]
