"""Blocks around new ops, for graphs that several threads build."""

import threading

import stoker.compat.v1 as tf


def _in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def _facts(graph, name):
    with graph.as_default():
        op = tf.no_op(name=name)
    return op.name, op.device, [each.name for each in op.control_inputs], op.colocation_groups()


def _start(graph):
    with graph.as_default():
        return tf.constant(1.0, name="c").op, tf.no_op(name="w")


def test_threads_share_blocks_but_name_scopes():
    """Without a switch a thread is in the blocks that another opened; its name scope is its own."""
    graph = tf.Graph()
    beside, first = _start(graph)
    with graph.control_dependencies([first]), graph.colocate_with(beside), graph.name_scope("outer"):
        assert _facts(graph, "mine") == ("outer/mine", "", ["w"], [b"loc:@c"])
        assert _in_thread(lambda: _facts(graph, "other")) == ("other", "", ["w"], [b"loc:@c"])


def test_switched_graphs_keep_blocks_apart():
    """After `switch_to_thread_local` a thread sees only the blocks it opened itself."""
    graph = tf.Graph()
    _, first = _start(graph)
    graph.switch_to_thread_local()

    def placed():
        with graph.device("/cpu:2"), graph.name_scope("inner"):
            return _facts(graph, "other")

    with graph.device("/cpu:1"), graph.control_dependencies([first]):
        assert _in_thread(lambda: _facts(graph, "other")) == ("other", "", [], [b"loc:@other"])
        assert _in_thread(placed) == ("inner/other", "/device:CPU:2", [], [b"loc:@inner/other"])
        assert _facts(graph, "mine") == ("mine", "/device:CPU:1", ["w"], [b"loc:@mine"])


def test_threads_start_with_the_blocks_open_at_the_switch():
    """What was open when the graph was switched is where every thread starts, for good."""
    graph = tf.Graph()
    beside, first = _start(graph)
    with graph.control_dependencies([first]), graph.colocate_with(beside):
        graph.switch_to_thread_local()
    graph.switch_to_thread_local()
    assert _facts(graph, "after") == ("after", "", [], [b"loc:@after"])
    assert _in_thread(lambda: _facts(graph, "other")) == ("other", "", ["w"], [b"loc:@c"])
