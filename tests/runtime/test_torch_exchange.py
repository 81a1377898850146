"""Values go to torch and come from it without a copy."""

from __future__ import annotations

import numpy as np
import torch

import stoker.compat.v1 as tf


def test_a_torch_tensor_keeps_its_memory(eager):
    """tf.constant of a torch tensor, .torch() and DLPack share memory; another dtype is a copy."""
    given = torch.arange(6.0).reshape(2, 3)
    for value in (given, given.t(), given.clone().requires_grad_()):
        tensor = tf.constant(value)
        assert tensor.shape.as_list() == list(value.shape)
        assert tensor.torch().data_ptr() == value.data_ptr()
        assert torch.from_dlpack(tensor).data_ptr() == value.data_ptr()
        np.testing.assert_array_equal(tensor.numpy(), value.detach().numpy())
    assert tf.constant(given, tf.float64).numpy().dtype == np.float64
    assert tf.constant(given, shape=[3, 2]).numpy().shape == (3, 2)
    assert (tf.add(given, 1.0).numpy() == given.numpy() + 1).all()


def test_torch_tensors_of_every_dtype(eager):
    """Each torch dtype becomes the dtype of the same name."""
    for name in ("float16", "bfloat16", "float64", "int8", "int64", "uint8", "bool", "complex64"):
        assert tf.constant(torch.ones(2, dtype=getattr(torch, name))).dtype.name == name
    turned = torch.tensor([1 + 2j]).conj()
    assert tf.constant(turned).numpy().tolist() == [1 - 2j]


def test_torch_tensors_are_fed():
    """A session takes a torch tensor where it takes an array, and a graph holds a copy of one as a constant."""
    given = torch.arange(3.0)
    fed = tf.placeholder(tf.float32, [3])
    held = tf.constant(given)
    with tf.Session() as session:
        assert session.run([fed * 2.0, held], {fed: given})[0].tolist() == [0.0, 2.0, 4.0]
        given += 1.0
        assert session.run(held).tolist() == [0.0, 1.0, 2.0]
