"""`tf.user_ops`: TensorFlow's example of a user-defined op."""

from __future__ import annotations

import numpy as np

from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR
from stoker._src.graph.definition import define
from stoker._src.graph.tensor import Tensor

FACT = define("Fact() -> (fact: string)")
FACT.kernel(lambda: np.array(b"0! == 1", dtype=object))
FACT.shape(lambda: SCALAR)


@export(v1="user_ops.my_fact")
def my_fact() -> Tensor:
    """A fact about factorials."""
    return FACT()
