"""Tables without a name."""

from __future__ import annotations

import numpy as np

import stoker as tf2
import stoker.compat.v1 as tf


def test_tables_without_a_name(eager):
    """Each call of AnonymousMutableHashTable makes a table of its own."""
    ops = tf2.raw_ops
    first, second = (ops.AnonymousMutableHashTable(key_dtype=tf.string, value_dtype=tf.int64) for _ in range(2))
    ops.LookupTableInsertV2(table_handle=first, keys=["a", "b"], values=np.array([1, 2]))
    found = ops.LookupTableFindV2(table_handle=first, keys=["b", "c"], default_value=np.int64(-1))
    assert found.numpy().tolist() == [2, -1]
    assert ops.LookupTableSizeV2(table_handle=second).numpy() == 0
