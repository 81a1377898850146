"""tf.Module: names, and what its attributes hold."""

import pytest

import stoker as tf2
import stoker.compat.v1 as tf


class Dense(tf2.Module):
    """Two variables, and one that a method makes."""

    def __init__(self, size, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf2.Variable(tf2.ones([size]), name="w")
            self.b = tf2.Variable([0.0] * size, name="b", trainable=False)

    @tf2.Module.with_name_scope
    def __call__(self, x):
        self.q = tf2.Variable(1.0, name="q")
        return x * self.w


class MyNetV2(tf2.Module):
    """Modules and variables in containers, one of them twice."""

    def __init__(self):
        super().__init__()
        self.z = [Dense(2), {"k": Dense(3), "a": tf2.Variable(5.0, name="in_dict")}]
        self.a = (tf2.Variable(1.0, name="first"),)
        self.same = self.z[0]
        self._private = tf2.Variable(9.0, name="private")


def names(things):
    return [thing.name for thing in things]


def test_collects(eager):
    """Own variables come first, by attribute; those of modules follow, each once."""
    net = MyNetV2()
    parts = ["dense/b:0", "dense/w:0"]
    assert (net.name, net.name_scope.name) == ("my_net_v2", "my_net_v2/")
    assert names(net.variables) == ["private:0", "first:0", "in_dict:0", *parts, *parts]
    assert names(net.trainable_variables) == ["private:0", "first:0", "in_dict:0", "dense/w:0", "dense/w:0"]
    assert names(net.non_trainable_variables) == ["dense/b:0", "dense/b:0"]
    assert names(net.submodules) == ["dense", "dense"]


def test_names(eager):
    """Names are the class's or given; methods may work in the module's scope."""
    dense = Dense(2, name="foo")
    dense(tf2.ones([2]))
    assert dense.q.name == "foo/q:0"
    with tf2.name_scope("outer"):
        assert Dense(1).w.name == "outer/dense/w:0"
    for name in ("a b", "1a"):
        with pytest.raises(ValueError, match="not a valid module name"):
            tf2.Module(name)


def test_in_graphs():
    """Two modules of one name have scopes of their own in a graph."""
    with tf.Graph().as_default():
        assert [Dense(1).name_scope.name for _ in range(2)] == ["dense/", "dense_1/"]
