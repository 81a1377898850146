"""Sparse steps cost what their rows cost, whatever the size of the table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import stoker.compat.v1 as tf
from benchmarks.sparse_step import OPTIMIZERS

BY_ROWS = ("index_select", "index_copy_", "index_add_", "index_put_", "_index_put_impl_", "detach", "alias")


def _large(values, size):
    return [v for v in tree_leaves(values) if isinstance(v, torch.Tensor) and v.numel() >= size]


class Work(TorchDispatchMode):
    """Notes every op that makes, or goes through, something of at least `size` numbers."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self.large = size, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        taken, given = _large(args, self._size), _large(made, self._size)
        copied = any(each.data_ptr() not in {other.data_ptr() for other in taken} for each in given)
        if copied or (taken and func.overloadpacket.__name__ not in BY_ROWS):
            self.large.add(func.overloadpacket.__name__)
        return made


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_only_rows_are_touched(name, resource):
    """No op of a sparse step goes through the table or makes a copy of it, save for Adam, whose rule moves every row."""
    rows, columns = 3000, 4
    table = tf.get_variable("table", [rows, columns], initializer=tf.ones_initializer(), use_resource=resource)
    step = tf.train.get_or_create_global_step()
    indices, values = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, columns])
    gradient = tf.IndexedSlices(values, indices, tf.constant([rows, columns], tf.int64))
    train = OPTIMIZERS[name](tf.train, step).apply_gradients([(gradient, table)], global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        fed = {indices: [5, 2999, 5, 0], values: np.ones([4, columns], np.float32)}
        session.run(train, fed)
        with Work(rows) as work:
            session.run(train, fed)
    assert bool(work.large) == (name == "Adam"), work.large
