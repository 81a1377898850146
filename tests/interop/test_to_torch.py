"""Graphs as torch modules: values, gradients, code, control flow, devices, and where graphs come from."""

from __future__ import annotations

import copy
import io
import re

import numpy as np
import pytest
import torch

import stoker
import stoker.compat.v1 as tf
from stoker._src.base.errors import FailedPreconditionError, InternalError, NotFoundError
from stoker._src.interop.source_check import check_module_source


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def _initialized() -> tf.Session:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def _dense() -> tuple:
    x = tf.placeholder(tf.float32, [None, 3], "x")
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", [3, 2])
        b = tf.get_variable("b", [2], trainable=False, initializer=tf.constant_initializer(0.5))
    return x, tf.nn.relu(tf.matmul(x, w) + b, name="out")


def test_parameters_buffers_and_code():
    """Trainable variables are parameters, others buffers, named by scope; each line of the code names its node."""
    x, y = _dense()
    with _initialized() as session:
        module = stoker.to_torch(tf.get_default_graph(), x, y)
        weights = session.run("layer/w:0")
    assert [name for name, _ in module.named_parameters()] == ["layer.w"]
    assert sorted(module.state_dict()) == ["layer.b", "layer.w"]
    assert module.variable_names == {"layer.w": "layer/w", "layer.b": "layer/b"}
    lines = [re.sub(r"\s+", " ", line).strip() for line in module.code.splitlines()]
    assert lines == [
        "def forward(self, x):",
        "matmul = torch.matmul(x, self.layer.w) # MatMul",
        "add = matmul + self.layer.b # add",
        "out = torch.relu(add) # out",
        "return out",
    ]
    given = np.ones([2, 3], np.float32)
    np.testing.assert_allclose(
        module(torch.tensor(given)).detach(), np.maximum(given @ weights + 0.5, 0), rtol=1e-6, atol=1e-6
    )


def test_sources(tmp_path):
    """A session, a meta graph, a checkpoint, a SavedModel and a frozen graph give the same module."""
    x, y = _dense()
    given = torch.rand(4, 3)
    with _initialized() as session:
        expected = session.run(y, {x: given.numpy()})
        prefix = tf.train.Saver().save(session, str(tmp_path / "model"))
        tf.saved_model.simple_save(session, str(tmp_path / "export"), {"x": x}, {"y": y})
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["out"])
        made = [
            stoker.to_torch(session, "x", "out"),
            stoker.to_torch(tf.get_default_graph(), x, y, session=session),
            stoker.to_torch(session.graph.as_graph_def(), "x:0", "out:0", checkpoint=prefix),
        ]
    tf.io.write_graph(frozen, str(tmp_path), "frozen.pbtxt", as_text=True)
    tf.io.write_graph(frozen, str(tmp_path), "frozen.pb", as_text=False)
    meta = tf.train.export_meta_graph()
    made += [
        stoker.to_torch(meta, "x", "out", checkpoint=tmp_path),
        stoker.to_torch(prefix, "x", "out"),
        stoker.to_torch(prefix + ".meta", "x", "out"),
        stoker.to_torch(tmp_path / "frozen.pb", "x", "out"),
        stoker.to_torch(str(tmp_path / "frozen.pbtxt"), "x", "out", train_constants=True),
    ]
    for module in made:
        np.testing.assert_allclose(module(given).detach().numpy(), expected, rtol=1e-6, atol=1e-6)
    by_signature = stoker.to_torch(tmp_path / "export")
    np.testing.assert_allclose(by_signature(given)["y"].detach().numpy(), expected, rtol=1e-6, atol=1e-6)
    assert [list(dict(module.named_parameters())) for module in made[-2:]] == [[], ["layer.w", "layer.b"]]
    assert sorted(made[-2].state_dict()) == ["layer.b", "layer.w"]


def test_what_is_missing_is_named(tmp_path):
    """Placeholders that are not given, variables without values, strings and unknown paths are named in the error."""
    x, y = _dense()
    with pytest.raises(FailedPreconditionError, match="layer/w has no value"):
        stoker.to_torch(tf.get_default_graph(), x, y)
    scale = tf.placeholder(tf.float32, [], "scale")
    text = tf.strings.length(tf.as_string(x), name="text")
    with _initialized() as session:
        with pytest.raises(ValueError, match="need the placeholders scale: name them"):
            stoker.to_torch(session, x, y * scale)
        with pytest.raises(NotImplementedError, match=r"text: StringLength works on strings"):
            stoker.to_torch(session, x, text)
        with pytest.raises(NotImplementedError, match="words: Const holds strings"):
            stoker.to_torch(session, x, [y, tf.constant(["a"], name="words")])
        with pytest.raises(ValueError, match="both inputs and outputs"):
            stoker.to_torch(session, x)
        with pytest.raises(ValueError, match="no signatures"):
            stoker.to_torch(session)
    with pytest.raises(NotFoundError, match="does not hold the graph"):
        stoker.to_torch(tmp_path / "nothing", "x", "y")
    with pytest.raises(TypeError, match=r"takes a tf\.Graph"):
        stoker.to_torch(3, "x", "y")


def test_batch_normalization_in_training_form():
    """Moving averages are buffers. They are updated in training mode, or always if the updates are among the outputs."""
    x = tf.placeholder(tf.float32, [None, 4, 4, 3], "x")
    y = tf.layers.batch_normalization(x, training=True, momentum=0.9)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    given = np.random.RandomState(0).randn(2, 4, 4, 3).astype(np.float32) * 3 + 1
    with _initialized() as session:
        module, explicit = stoker.to_torch(session, x, y), stoker.to_torch(session, x, [y, *updates], updates=False)
        expected, *_ = session.run([y, *updates], {x: given})
        moved = [session.run(f"batch_normalization/moving_{name}:0") for name in ("mean", "variance")]
    before = module.eval()(torch.tensor(given))
    assert not module.batch_normalization.moving_mean.any()
    np.testing.assert_allclose(before.detach(), expected, rtol=1e-4, atol=1e-5)
    module.train()(torch.tensor(given))
    result = explicit.eval()(torch.tensor(given))
    assert len(result) == 3
    for each in (module, explicit):
        np.testing.assert_allclose(each.batch_normalization.moving_mean, moved[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(each.batch_normalization.moving_variance, moved[1], rtol=1e-5)
        assert not each.batch_normalization.moving_mean.requires_grad


def test_branches():
    """A boolean input decides in Python or as a tensor; the branch that runs is differentiated."""
    x, flag = tf.placeholder(tf.float32, [2], "x"), tf.placeholder(tf.bool, [], "flag")
    w = tf.get_variable("w", [2], initializer=tf.constant_initializer(3.0))
    y = tf.cond(flag, lambda: tf.reduce_sum(x * w), lambda: tf.reduce_sum(x))
    z = tf.switch_case(tf.cast(flag, tf.int32), [lambda: x + 1.0, lambda: x * w])
    with _initialized() as session:
        module = stoker.to_torch(session, [x, flag], [y, z])
    given = torch.tensor([1.0, 2.0])
    assert module(given, True)[0].item() == 9.0
    assert module(given, torch.tensor(False))[0].item() == 3.0
    assert module(given, torch.tensor(True))[1].tolist() == [3.0, 6.0]
    module(given, torch.tensor(True))[0].backward()
    assert module.w.grad.tolist() == [1.0, 2.0]


def test_loops_whose_length_depends_on_data():
    """A loop runs as long as the data says, and gradients pass through all its iterations."""
    x = tf.placeholder(tf.float32, [], "x")
    count, y = tf.while_loop(lambda i, y: y < 100.0, lambda i, y: (i + 1, y * x), [0, x])
    expected = tf.gradients(y, x)[0]
    with tf.Session() as session:
        module = stoker.to_torch(session, x, [count, y])
        given = torch.tensor(3.0, requires_grad=True)
        steps, value = module(given)
        value.backward()
        assert (steps.item(), value.item(), given.grad.item()) == (
            *session.run([count, y], {x: 3.0}),
            session.run(expected, {x: 3.0}),
        )
    assert "ops.while_loop(" in module.code


def test_lists_and_bounded_loops():
    """TensorArrays become Python lists; loops over sizes are Python's loops, so that a traced module holds their iterations."""
    x = tf.placeholder(tf.float32, [None, 4], "x")
    steps = tf.unstack(tf.map_fn(lambda row: row * 2.0, tf.transpose(x)), num=4)
    total = tf.scan(lambda a, b: a + b, tf.transpose(x))
    with tf.Session() as session:
        module = stoker.to_torch(session, x, [steps[3], total])
        given = np.arange(12, dtype=np.float32).reshape(3, 4)
        for value, result in zip(session.run([steps[3], total], {x: given}), module(torch.tensor(given))):
            np.testing.assert_array_equal(value, result)
    assert "while_loop" not in module.code


def test_kernels_without_a_form_keep_their_gradient():
    """An op that calls the Session's kernel is differentiated by TensorFlow's own rule."""
    x = tf.placeholder(tf.float32, [1, 6, 6, 1], "x")
    y = tf.image.resize_bicubic(x, [3, 9])
    gradient = tf.gradients(tf.reduce_sum(y * y), x)[0]
    value = np.random.RandomState(0).rand(1, 6, 6, 1).astype(np.float32)
    with tf.Session() as session:
        module = stoker.to_torch(session, x, y)
        expected = session.run(gradient, {x: value})
    assert "ResizeBicubic_kernel(" in module.code
    given = torch.tensor(value, requires_grad=True)
    (module(given) ** 2).sum().backward()
    np.testing.assert_allclose(given.grad, expected, rtol=1e-4, atol=1e-5)


def test_kernels_that_torch_cannot_trace_are_exported_as_ops():
    """An exported program holds them as nodes, with symbolic sizes and gradients, and can be saved."""
    x = tf.placeholder(tf.float32, [None, 4, 4, 1], "x")
    boxes, scores = tf.placeholder(tf.float32, [5, 4], "boxes"), tf.placeholder(tf.float32, [5], "scores")
    y = tf.image.resize_bicubic(x, [3, 6])
    kept = tf.gather(boxes, tf.image.non_max_suppression(boxes, scores, 3, iou_threshold=0.2))
    random = np.random.RandomState(1)
    values = [random.rand(*shape).astype(np.float32) for shape in ([2, 4, 4, 1], [5, 4], [5])]
    with tf.Session() as session:
        module = stoker.to_torch(session, [x, boxes, scores], [y, kept])
        expected = session.run([y, kept, tf.gradients(y, x)[0]], dict(zip([x, boxes, scores], values)))
    given = tuple(map(torch.tensor, values))
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(module.eval(), given, dynamic_shapes=[{0: batch}, None, None])
    assert [str(node.target) for node in program.graph.nodes].count("stoker.run_op.default") == 2
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    image = given[0].requires_grad_(True)
    resized, boxes_kept = loaded(image, *given[1:])
    np.testing.assert_allclose(resized.detach(), expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(boxes_kept, expected[1])
    resized.sum().backward()
    np.testing.assert_allclose(image.grad, expected[2], rtol=1e-5, atol=1e-6)
    assert loaded(torch.zeros([7, 4, 4, 1]), *given[1:])[0].shape == (7, 3, 6, 1)


def test_random_numbers_come_from_torch():
    """Dropout draws from torch's generator: a seed repeats it, and kept elements are scaled."""
    x = tf.placeholder(tf.float32, [None], "x")
    rate = tf.placeholder_with_default(0.5, [], "rate")
    with tf.Session() as session:
        module = stoker.to_torch(session, x, tf.nn.dropout(x, rate=rate))
    draws = []
    for _ in range(2):
        torch.manual_seed(5)
        draws.append(module(torch.ones(1000)))
    assert torch.equal(*draws)
    assert set(draws[0].tolist()) == {0.0, 2.0}


def test_any_tensor_can_be_an_input():
    """As in a feed_dict, an inner tensor can be given; what it was computed from is then not needed."""
    x = tf.placeholder(tf.float32, [2], "x")
    middle = tf.square(x, name="middle")
    with tf.Session() as session:
        module = stoker.to_torch(session, {"given": middle}, {"out": middle + 1.0, "twice": middle * 2.0})
    result = module(given=torch.tensor([1.0, 2.0]))
    assert {key: value.tolist() for key, value in result.items()} == {"out": [2.0, 3.0], "twice": [2.0, 4.0]}


def test_modules_are_ordinary_torch_modules():
    """A module can be copied, converted to float64, moved, and its state saved and loaded."""
    x, y = _dense()
    with _initialized() as session:
        module = stoker.to_torch(session, x, y)
    copied = copy.deepcopy(module)
    assert copied.layer.w is not module.layer.w
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    with torch.no_grad():
        copied.layer.w.zero_()
    copied.load_state_dict(torch.load(file, weights_only=True))
    given = torch.rand(2, 3)
    assert torch.equal(copied(given), module(given))
    assert module.double()(given.double()).dtype is torch.float64
    assert module.to("meta")(torch.empty(2, 3, device="meta").double()).device.type == "meta"


def test_functions_of_2_x(tmp_path):
    """The functions of a TensorFlow 2 SavedModel are written inline."""
    x = tf.placeholder(tf.float32, [None, 2], "x")
    v = tf.Variable([[2.0], [3.0]], name="v", use_resource=True)

    @tf.function
    def inner(a):
        return tf.matmul(a, v) if tf.reduce_sum(a) > 0.0 else -tf.matmul(a, v)

    y = inner(x)
    with _initialized() as session:
        module = stoker.to_torch(session, x, y)
        for given in ([[1.0, 1.0]], [[-1.0, -1.0]]):
            assert module(torch.tensor(given)).tolist() == session.run(y, {x: given}).tolist() == [[5.0]]


@pytest.mark.parametrize(
    "source",
    [
        "def forward(self):\n    import os\n",
        "def forward(self):\n    return self.__class__\n",
        "def forward(self):\n    return open('x')\n",
        "def forward(self):\n    return eval\n",
        "def forward(self):\n    return 'os.system(\"x\")'\n",
        "def forward(self):\n    try:\n        pass\n    finally:\n        pass\n",
    ],
)
def test_only_code_that_the_writer_writes_is_compiled(source):
    """Imports, private attributes, other names and text are refused."""
    with pytest.raises(InternalError, match="The code of the module"):
        check_module_source(source, "<test>", {"torch"})


def test_names_of_nodes_cannot_become_code():
    """Names with quotes, line breaks or keywords end up as harmless names and comments."""
    graph_def = tf.GraphDef()
    for name in ("x\nimport os", "lambda", "code", "class"):
        node = graph_def.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = tf.float32.as_datatype_enum
    try:
        module = stoker.to_torch(graph_def, ["lambda:0", "class:0", "x\nimport os:0"], ["lambda:0", "x\nimport os:0"])
    except (ValueError, tf.errors.OpError):
        module = stoker.to_torch(_renamed(graph_def), ["lambda:0", "class:0"], ["lambda:0", "class:0"])
    assert "import os\n" not in module.code
    assert "lambda_" in module.code


def _renamed(graph_def):
    kept = tf.GraphDef()
    kept.node.extend(node for node in graph_def.node if "\n" not in node.name)
    return kept
