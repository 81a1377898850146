"""make_template: variables made at the first call, shared by the others."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf


def scaled(x, size=2):
    return tf.add(tf.get_variable("w", [size]), x, name="y")


def test_calls_share_variables_and_get_scopes_of_their_own():
    """Names of ops and variables are TensorFlow's."""
    first, second = tf.make_template("tm", scaled), tf.make_template("tm", scaled, size=3)
    assert [first(1.0).name, first(2.0).name, second(1.0).name] == ["tm/y:0", "tm_1/y:0", "tm_2/y:0"]
    assert [v.name for v in tf.global_variables()] == ["tm/w:0", "tm_1/w:0"]
    assert [v.name for v in second.trainable_variables] == ["tm_1/w:0"] and second.variable_scope_name == "tm_1/"
    assert first.name == "tm" and first.var_scope.name == "tm" and first.non_trainable_variables == []
    with tf.variable_scope("outer"), tf.name_scope("inner"):
        assert first(1.0).name == "outer/inner/tm/y:0"
    assert len(tf.global_variables()) == 2


def test_scopes_made_at_once_and_unique_names():
    """create_scope_now_ fixes where variables go; unique_name_ is used as it is."""
    with tf.variable_scope("outer"):
        early = tf.make_template("now", scaled, create_scope_now_=True)
    assert early.variable_scope_name == "outer/now/"
    assert early(1.0).name == "now/y:0" and early.variables[0].name == "outer/now/w:0"
    assert tf.make_template("any", scaled, unique_name_="uniq")(1.0).name == "uniq/y:0"
    assert tf.make_template("late", scaled).variable_scope_name is None


def test_a_later_call_may_not_make_variables():
    """The error says where the template was made."""
    names = iter(["a", "b"])
    template = tf.make_template("bad", lambda: tf.get_variable(next(names), [1]))
    template()
    with pytest.raises(ValueError, match=r"bad/b does not exist(.|\n)*originally defined at:(.|\n)*test_template"):
        template()
