"""The contract of `Optimizer`: gradients, updates, slots, names, errors, hooks."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

KINDS = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


def _descent(rate=0.1):
    return tf.train.GradientDescentOptimizer(rate)


def _names(operations):
    return [op.name for op in operations]


# -- names and construction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", None])
def test_a_name_is_required(name):
    """An optimizer has a name."""
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.Optimizer(False, name)


def test_get_name():
    """`get_name` is the name given to the constructor, which the training op carries too."""
    optimizer = tf.train.AdamOptimizer(name="mine")
    w = tf.Variable(1.0, name="w")
    assert optimizer.get_name() == "mine"
    assert optimizer.minimize(w * w).name == "mine"
    assert [v.op.name for v in optimizer.variables()] == ["beta1_power", "beta2_power", "w/mine", "w/mine_1"]
    assert _descent().minimize(w * w, name="other").name == "other"


def test_train_op_collection():
    """The op that trains joins TRAIN_OP, once."""
    w = tf.Variable(1.0)
    train = _descent().minimize(w * w)
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]


def test_ops_of_adam():
    """The ops that Adam adds have TensorFlow's names."""
    w = tf.Variable([1.0, 2.0], name="w")
    optimizer = tf.train.AdamOptimizer()
    pairs = optimizer.compute_gradients(tf.reduce_sum(w * w))
    before = len(w.graph.get_operations())
    optimizer.apply_gradients(pairs, global_step=tf.train.create_global_step())
    added = _names(w.graph.get_operations()[before:])
    for part in (
        "beta1_power beta1_power/Assign beta1_power/read beta2_power w/Adam/Initializer/zeros w/Adam w/Adam/Assign w/Adam/read "
        "w/Adam_1 Adam/learning_rate Adam/beta1 Adam/beta2 Adam/epsilon Adam/update_w/ApplyAdam Adam/mul Adam/Assign Adam/mul_1 "
        "Adam/Assign_1 Adam/update Adam/value Adam"
    ).split():
        assert part in added, part


# -- compute_gradients --------------------------------------------------------------------------------------------


@KINDS
def test_gradients_come_in_pairs(resource):
    """Every variable is there, with None where the loss does not depend on it and slices where rows were looked up."""
    w = tf.Variable([1.0, 2.0], use_resource=resource)
    rows = tf.Variable(np.ones([4, 2], np.float32), use_resource=resource)
    unused = tf.Variable(1.0, use_resource=resource)
    loss = tf.reduce_sum(w * w) + tf.reduce_sum(tf.gather(rows, [1, 1]))
    pairs = _descent().compute_gradients(loss)
    assert [v for _, v in pairs] == [w, rows, unused]
    dense, sparse, nothing = (g for g, _ in pairs)
    assert isinstance(dense, tf.Tensor) and isinstance(sparse, tf.IndexedSlices) and nothing is None


def test_var_list():
    """A list or tuple of variables restricts what is differentiated; partitioned variables stand for their parts."""
    w, u = tf.Variable(1.0), tf.Variable(2.0)
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        p = tf.get_variable("p", [4])
    loss = w * u + tf.reduce_sum(p)
    assert [v for _, v in _descent().compute_gradients(loss, var_list=(u,))] == [u]
    assert [v for _, v in _descent().compute_gradients(loss, var_list=[w, p])] == [w, *p]


def test_grad_loss():
    """`grad_loss` is the gradient that back-propagation starts from."""
    w = tf.Variable(3.0)
    ((gradient, _),) = _descent().compute_gradients(w * w, grad_loss=tf.constant(10.0))
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run(gradient) == 60.0


@pytest.mark.parametrize("gate", [0, 1, 2])
def test_gates_do_not_change_values(gate):
    """Gates order the gradients of an op (or of the graph) before their use; the numbers stay."""
    assert (tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH) == (0, 1, 2)
    w, u = tf.Variable(2.0), tf.Variable(np.ones([3, 2], np.float32))
    loss = w * tf.reduce_sum(tf.gather(u, [0, 2]))
    (first, _), (second, _) = _descent().compute_gradients(loss, gate_gradients=gate)
    assert isinstance(second, tf.IndexedSlices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(first) == 4.0
        np.testing.assert_array_equal(session.run(second.values), np.full([2, 2], 2.0))


def test_gate_graph_waits_for_all():
    """With GATE_GRAPH every gradient waits for all the others."""
    w, u = tf.Variable(2.0), tf.Variable(3.0)
    (first, _), (second, _) = _descent().compute_gradients(w * w + u, gate_gradients=2)
    assert first.op.control_inputs == second.op.control_inputs != []


def test_bad_arguments_of_compute_gradients():
    """Bad gates, losses and variables are refused."""
    w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        _descent().compute_gradients(w * w, gate_gradients=7)
    with pytest.raises(ValueError, match="Invalid type"):
        _descent().compute_gradients(tf.constant(1))
    for loss in (1.0, None, [w * w], "w"):
        with pytest.raises(ValueError, match="loss must be a tensor"):
            _descent().compute_gradients(loss)
    with pytest.raises(TypeError, match=r"not a tf\.Variable"):
        _descent().compute_gradients(w * w, var_list=["w"])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="No variables to optimize"):
        _descent().compute_gradients(tf.constant(1.0))


def test_valid_dtypes_can_be_extended():
    """Subclasses say which dtypes they train."""

    class Complex(tf.train.GradientDescentOptimizer):
        def _valid_dtypes(self):
            return {tf.complex64}

    with pytest.raises(ValueError, match="Invalid type"):
        Complex(0.1)._assert_valid_dtypes([tf.constant(1.0)])
    Complex(0.1)._assert_valid_dtypes([tf.constant(1j, tf.complex64)])


# -- apply_gradients ----------------------------------------------------------------------------------------------


@KINDS
def test_global_step_is_counted_after_the_update(resource):
    """The step is incremented once for each run, when the variables have changed."""
    w = tf.Variable(1.0, use_resource=resource)
    step = tf.Variable(0, dtype=tf.int64, trainable=False, use_resource=resource)
    train = _descent().minimize(w * w, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for count in (1, 2):
            train.run()
            assert session.run(step) == count


def test_what_has_no_gradient_is_skipped():
    """Pairs without a gradient are left out, and get no slots."""
    w, u = tf.Variable(1.0, name="w"), tf.Variable(2.0, name="u")
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.apply_gradients([(None, w), (tf.constant(1.0), u)])
    assert optimizer.get_slot(w, "momentum") is None
    assert optimizer.get_slot(u, "momentum").op.name == "u/Momentum"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([w, u]) == [1.0, pytest.approx(1.9)]


def test_bad_pairs():
    """Something must be trained, and by pairs of gradients and variables."""
    w = tf.Variable(1.0, name="w")
    with pytest.raises(ValueError, match="No variables provided"):
        _descent().apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        _descent().apply_gradients([(None, w)])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        _descent().minimize(tf.constant(1.0))
    for bad in (w, (1, 2, 3), (tf.constant(1.0), "w")):
        with pytest.raises(TypeError):
            _descent().apply_gradients([bad])
    with pytest.raises(TypeError, match="Gradient must be convertible"):
        _descent().apply_gradients([(object(), w)])
    with pytest.raises(NotImplementedError, match="update a Tensor"):
        _descent().apply_gradients([(tf.constant(1.0), tf.constant(1.0))])


@KINDS
def test_shape_of_a_gradient(resource):
    """A gradient has the shape of its variable, checked when the graph is made or, if unknown then, when it runs."""
    w = tf.Variable([1.0, 2.0], use_resource=resource)
    with pytest.raises(ValueError):
        _descent().apply_gradients([(tf.constant([1.0, 2.0, 3.0]), w)])
    g = tf.placeholder(tf.float32)
    train = _descent().apply_gradients([(g, w)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not have the same shape"):
            session.run(train, {g: np.ones(3)})


@KINDS
def test_uninitialized_variables(resource):
    """Training what is not initialized is an error that names it."""
    w = tf.Variable([1.0], name="weights", use_resource=resource)
    train = _descent().apply_gradients([(tf.constant([1.0]), w)])
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="weights"):
        session.run(train)


def test_learning_rate_is_a_scalar():
    """A learning rate with a shape is refused."""
    w = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError):
        _descent([0.1, 0.2]).minimize(tf.reduce_sum(w))
    rate = tf.placeholder(tf.float32)
    train = _descent(rate).minimize(tf.reduce_sum(w))
    with tf.Session() as session:
        session.run(w.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not a scalar"):
            session.run(train, {rate: [0.1, 0.2]})


@KINDS
def test_hyperparameters_may_be_tensors_or_functions(resource):
    """A learning rate that is a tensor is evaluated at every step; a function is called when the graph is made."""
    w = tf.Variable(1.0, use_resource=resource)
    rate = tf.placeholder(tf.float32, [])
    by_tensor = _descent(rate).minimize(w)
    by_function = _descent(lambda: 0.25).minimize(w)
    with tf.Session() as session:
        session.run(w.initializer)
        session.run(by_tensor, {rate: 0.5})
        assert session.run(w) == 0.5
        session.run(by_function)
        assert session.run(w) == 0.25


@KINDS
def test_constraints(resource):
    """A variable's constraint is applied after its update; with sparse gradients there can be none."""
    w = tf.Variable([1.0, 5.0], constraint=lambda x: tf.clip_by_value(x, 0.0, 2.0), use_resource=resource)
    train = _descent(1.0).apply_gradients([(tf.constant([3.0, 1.0]), w)])
    with tf.Session() as session:
        session.run(w.initializer)
        session.run(train)
        np.testing.assert_array_equal(session.run(w), [0.0, 2.0])
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    with pytest.raises(RuntimeError, match="constraint function on a sparse variable"):
        _descent().apply_gradients([(slices, w)])


# -- slots --------------------------------------------------------------------------------------------------------


def test_slots():
    """Slots are found by variable and name; they are global variables that are not trained."""
    w = tf.Variable([1.0], name="w")
    optimizer = tf.train.AdamOptimizer()
    assert optimizer.get_slot_names() == [] and optimizer.get_slot(w, "m") is None
    optimizer.minimize(tf.reduce_sum(w))
    assert optimizer.get_slot_names() == ["m", "v"]
    m = optimizer.get_slot(w, "m")
    assert m.op.name == "w/Adam" and m in tf.global_variables() and tf.trainable_variables() == [w]
    assert optimizer.get_slot(w, "nothing") is None
    count = len(tf.global_variables())
    optimizer.minimize(tf.reduce_sum(w))
    assert len(tf.global_variables()) == count and optimizer.get_slot(w, "m") is m


def test_variables_of_the_current_graph():
    """`variables` lists what belongs to the current graph only."""
    optimizer = tf.train.AdamOptimizer()
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            w = tf.Variable([1.0], name="w")
            optimizer.minimize(tf.reduce_sum(w))
            found = optimizer.variables()
            assert [v.name for v in found] == ["beta1_power:0", "beta2_power:0", "w/Adam:0", "w/Adam_1:0"]
            assert all(v.graph is graph for v in found)


def test_slots_of_partitioned_variables():
    """The slot of a part is saved as a part of the whole variable's slot."""
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        p = tf.get_variable("w", [4, 2], initializer=tf.ones_initializer())
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.minimize(tf.reduce_sum(tf.convert_to_tensor(p) * 3.0))
    slots = [optimizer.get_slot(part, "momentum") for part in p]
    assert [slot.op.name for slot in slots] == ["p/w/part_0/Momentum", "p/w/part_1/Momentum"]
    infos = [slot._get_save_slice_info() for slot in slots]
    assert [(i.full_name, i.full_shape, i.var_offset) for i in infos] == [
        ("p/w/Momentum", [4, 2], [0, 0]),
        ("p/w/Momentum", [4, 2], [2, 0]),
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(p.as_tensor()), np.full([4, 2], 0.7), rtol=1e-6)


def test_slots_inside_of_a_variable_scope():
    """An optimizer used inside of a variable scope names its slots under it."""
    w = tf.Variable([1.0], name="w")
    with tf.variable_scope("outer"):
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer.minimize(tf.reduce_sum(w))
    assert optimizer.get_slot(w, "momentum").op.name == "outer/w/Momentum"


# -- optimizers with bad numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.0), "must be positive: 0.0"),
        (lambda: tf.train.ProximalAdagradOptimizer(0.1, initial_accumulator_value=-1.0), "must be positive: -1.0"),
        (lambda: tf.train.AdagradDAOptimizer(0.1, None, 0.0), "must be positive: 0.0"),
        (lambda: tf.train.FtrlOptimizer(0.1, learning_rate_power=1.0), "needs to be negative or zero"),
        (lambda: tf.train.FtrlOptimizer(0.1, initial_accumulator_value=-1.0), "needs to be positive or zero"),
        (lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-1.0), "needs to be positive or zero"),
        (lambda: tf.train.FtrlOptimizer(0.1, l2_regularization_strength=-1.0), "needs to be positive or zero"),
        (
            lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=-1.0),
            "needs to be positive or zero",
        ),
    ],
)
def test_numbers_out_of_range(make, text):
    """Numbers that make no sense are refused by the constructor."""
    with pytest.raises(ValueError, match=text):
        make()


@KINDS
def test_ftrl_slot_names(resource):
    """Ftrl's slots can be given names of their own."""
    w = tf.Variable([1.0], name="w", use_resource=resource)
    tf.train.FtrlOptimizer(0.1, accum_name="AA", linear_name="LL").minimize(tf.reduce_sum(w))
    assert {"w/AA", "w/LL"} <= {v.op.name for v in tf.global_variables()}


# -- optimizers written by users ----------------------------------------------------------------------------------


class SignDescent(tf.train.Optimizer):
    """An optimizer as a user would write it, with a slot, a variable of its own and all hooks."""

    def __init__(self, rate, use_locking=False, name="SignDescent"):
        super().__init__(use_locking, name)
        self._rate = rate

    def _create_slots(self, var_list):
        for var in var_list:
            self._zeros_slot(var, "seen", self._name)
            self._get_or_make_slot(var, tf.ones_like(var.initial_value), "ones", self._name + "Ones")
        self._create_non_slot_variable(initial_value=0.0, name="updates", colocate_with=var_list[0])

    def _prepare(self):
        self._rate_t = tf.convert_to_tensor(self._call_if_callable(self._rate), name="rate")

    def _apply_dense(self, grad, var):
        seen = tf.assign_add(self.get_slot(var, "seen"), tf.abs(grad))
        with tf.control_dependencies([seen]):
            return tf.assign_sub(var, self._rate_t * tf.sign(grad)).op

    def _resource_apply_dense(self, grad, var):
        return var.assign_sub(self._rate_t * tf.sign(grad), read_value=False)

    def _apply_sparse(self, grad, var):
        return tf.scatter_sub(var, grad.indices, self._rate_t * tf.sign(grad.values)).op

    def _resource_apply_sparse(self, grad, var, indices):
        return tf.raw_ops.ResourceScatterSub(resource=var.handle, indices=indices, updates=self._rate_t * tf.sign(grad))

    def _finish(self, update_ops, name_scope):
        with tf.control_dependencies(update_ops):
            counted = self._get_non_slot_variable("updates", tf.get_default_graph()).assign_add(1.0, read_value=False)
        return tf.group(*update_ops, counted, name=name_scope)


@KINDS
def test_a_users_optimizer(resource):
    """A subclass that overrides TensorFlow's hooks works, dense and sparse (rows named twice are summed first)."""
    w = tf.Variable([1.0, 2.0], name="w", use_resource=resource)
    rows = tf.Variable(np.zeros([4, 1], np.float32), use_resource=resource)
    loss = tf.reduce_sum(w * [3.0, -4.0]) + tf.reduce_sum(tf.gather(rows, [2, 0, 2]) * [[1.0], [2.0], [-3.0]])
    optimizer = SignDescent(lambda: 0.5)
    train = optimizer.minimize(loss)
    assert train.name == "SignDescent" and optimizer.get_slot_names() == ["ones", "seen"]
    assert "updates" in [v.op.name for v in optimizer.variables()]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(w), [0.5, 2.5])
        np.testing.assert_allclose(session.run(rows), [[-0.5], [0.0], [0.5], [0.0]])
        assert session.run(optimizer._get_non_slot_variable("updates", w.graph)) == 1.0


@KINDS
def test_hooks_that_are_missing(resource):
    """An optimizer that lacks a hook says which kind of update it does not do."""
    w = tf.Variable([1.0], use_resource=resource)
    optimizer = tf.train.Optimizer(False, "bare")
    with pytest.raises(NotImplementedError, match="dense"):
        optimizer.apply_gradients([(tf.constant([1.0]), w)])
    with pytest.raises(NotImplementedError, match="sparse"):
        optimizer.apply_gradients([(tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])), w)])


# -- many variables at once ---------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("make", [tf.train.AdamOptimizer, lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5)])
def test_many_variables_are_updated_as_one_by_one(make, resource):
    """Small variables that are updated together end as they do alone, also when one is assigned to in between."""
    shapes = [(3,), (2, 2), (), (5, 1)] * 4 + [(200, 100)]
    random = np.random.RandomState(0)
    starts = [np.asarray(random.randn(*shape), np.float32) for shape in shapes]
    gradients = [[np.asarray(random.randn(*shape), np.float32) for shape in shapes] for _ in range(4)]

    def train(together):
        with tf.Graph().as_default(), tf.Session() as session:
            made = [tf.Variable(start, use_resource=resource) for start in starts]
            fed = [tf.placeholder(tf.float32, shape) for shape in shapes]
            if together:
                step = make().apply_gradients(list(zip(fed, made)))
            else:
                step = tf.group(*[make().apply_gradients([pair]) for pair in zip(fed, made)])
            assign = made[1].assign(np.ones([2, 2], np.float32))
            session.run(tf.global_variables_initializer())
            for i, values in enumerate(gradients):
                if i == 2:
                    session.run(assign)
                session.run(step, dict(zip(fed, values)))
            return session.run(made)

    for one, other in zip(train(together=True), train(together=False)):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_gradients_that_are_not_contiguous():
    """A gradient whose memory lies in another order than the variable's is applied element by element."""
    w = tf.Variable(np.zeros([3, 4], np.float32))
    g = tf.placeholder(tf.float32, [4, 3])
    train = tf.train.MomentumOptimizer(1.0, 0.5).apply_gradients([(tf.transpose(g), w)])
    value = np.arange(12, dtype=np.float32).reshape(4, 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {g: value})
        np.testing.assert_array_equal(session.run(w), -value.T)


def test_a_gradient_that_is_the_variable():
    """A variable may be its own gradient: the update uses the value before it."""
    w = tf.Variable([1.0, 2.0])
    train = tf.train.MomentumOptimizer(0.5, 0.9).apply_gradients([(w.value(), w)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(w), [0.5, 1.0])


# -- eager mode ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("eager")
def test_eager_minimize():
    """In eager mode a loss is a function; each call of `minimize` is one step, and counts it."""
    w = tf.Variable([3.0, -2.0])
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    optimizer = _descent(0.25)
    for _ in range(2):
        assert optimizer.minimize(lambda: tf.reduce_sum(w * w), global_step=step, var_list=[w]) is None
    np.testing.assert_allclose(w.numpy(), [0.75, -0.5])
    assert int(step.numpy()) == 2


@pytest.mark.usefixtures("eager")
def test_eager_finds_the_variables():
    """Without a list the trainable variables that the loss reads are trained."""
    w, u = tf.Variable(2.0), tf.Variable(5.0, trainable=False)
    pairs = _descent().compute_gradients(lambda: w * w + u)
    assert [v for _, v in pairs] == [w] and float(pairs[0][0]) == 4.0


@pytest.mark.usefixtures("eager")
def test_eager_slots():
    """Slots and powers live as long as the optimizer."""
    w = tf.Variable([1.0], name="w")
    optimizer = tf.train.AdamOptimizer(0.1)
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant([2.0]), w)])
    assert optimizer.get_slot(w, "m").shape == [1]
    np.testing.assert_allclose(w.numpy(), [0.7], rtol=1e-5)
    assert len(optimizer.variables()) == 4


@pytest.mark.usefixtures("eager")
def test_eager_sparse_gradients():
    """Sparse gradients work in eager mode, rows named twice added up."""
    w = tf.Variable(np.zeros([3, 1], np.float32))
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([2, 0, 2]))
    tf.train.AdagradOptimizer(1.0, initial_accumulator_value=1.0).apply_gradients([(slices, w)])
    np.testing.assert_allclose(w.numpy(), [[-2 / 5**0.5], [0], [-5 / 26**0.5]], rtol=1e-6)


@pytest.mark.usefixtures("eager")
def test_eager_loss_must_be_a_function():
    """A tensor has no history in eager mode."""
    with pytest.raises(RuntimeError, match="should be a function"):
        _descent().compute_gradients(tf.constant(1.0))


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("dtype", [tf.int32, tf.uint8, tf.complex64])
def test_numbers_that_cannot_be_optimized(dtype, resource):
    """Training ops take integers when a graph is built and refuse them when it runs; Ftrl refuses complex numbers too."""
    v = tf.Variable(tf.cast([[1, 2], [3, 4]], dtype), use_resource=resource)
    name = "Ftrl" if dtype.is_complex else "GradientDescent"
    optimizer = tf.train.FtrlOptimizer(0.1) if dtype.is_complex else tf.train.GradientDescentOptimizer(1)
    train = optimizer.apply_gradients([(tf.cast([[1, 1], [1, 1]], dtype), v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"No OpKernel .*Apply{name}' with T={dtype.name}"):
            session.run(train)


@pytest.mark.usefixtures("eager")
def test_eager_names():
    """In eager mode variables are named after the scopes around them, and slots after their variables."""
    with tf.variable_scope("s"):
        v = tf.get_variable("q", [1])
        optimizer = tf.train.AdamOptimizer()
        optimizer.minimize(lambda: v * v)
        assert tf.Variable(1.0, name="w").name == "s/w:0"
    names = ["s/beta1_power:0", "s/beta2_power:0", "s/s/q/Adam:0", "s/s/q/Adam_1:0"]
    assert [each.name for each in optimizer.variables()] == names
    with tf.name_scope("a"), tf.name_scope("b") as scope:
        assert scope == "a/b/" and tf.Variable(1.0).name == "a/b/Variable:0"
        with tf.name_scope(None):
            assert tf.Variable(1.0, name="z").name == "z:0"


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.GradientDescentOptimizer(0.1),
        lambda: tf.train.AdamOptimizer(0.1),
        lambda: tf.train.FtrlOptimizer(0.1),
    ],
)
def test_inside_of_a_function(make):
    """`minimize` inside of a tf.function does at every call what it does eagerly; slots are made once, outside of it."""
    values = []
    for wrap in (lambda step: step, tf.function):
        v, table, optimizer = tf.Variable([1.0, 2.0], name="v"), tf.Variable(np.ones([3, 1], np.float32)), make()

        def step(v=v, table=table, optimizer=optimizer):
            optimizer.minimize(lambda: tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(table, [0, 0])))
            return v.read_value()

        called = wrap(step)
        values.append([called().numpy(), called().numpy(), table.numpy().ravel()])
        values[-1].append(np.array(len(optimizer.variables())))
    for eager, traced in zip(*values):
        np.testing.assert_allclose(traced, eager, rtol=1e-6)


def test_sums_of_gradients_are_placed_with_their_first_term():
    """The sum of several gradients belongs to the colocation group of the first of them."""
    v = tf.Variable([1.0, 2.0], use_resource=False)
    for together, group in ((False, b"loc:@gradients/mul_grad/Mul"), (True, b"loc:@mul_1")):
        (gradient,) = tf.gradients(v * v, [v], colocate_gradients_with_ops=together)
        assert gradient.op.type == "AddN" and gradient.op.colocation_groups() == [group]


@pytest.mark.parametrize("kind", ["Adam", "Adagrad", "Ftrl", "RMSProp"])
def test_functions_train_eager_variables(eager, kind):
    """Inside of a tf.function an optimizer makes its slots outside of it, once, and trains as it does eagerly."""
    inside, outside = tf2.Variable([1.0, 2.0], name="v"), tf2.Variable([1.0, 2.0], name="v")
    optimizers = [getattr(tf.train, f"{kind}Optimizer")(0.1) for _ in range(2)]

    def step(optimizer, variable):
        with tf2.GradientTape() as tape:
            loss = tf2.reduce_sum(variable * variable)
        optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])
        return loss

    traced = tf2.function(lambda: step(optimizers[0], inside))
    for _ in range(3):
        assert np.allclose(traced(), step(optimizers[1], outside), rtol=1e-6)
    assert np.allclose(inside.numpy(), outside.numpy(), rtol=1e-6)
    names = [variable.name for variable in optimizers[0].variables()]
    assert f"v/{kind}:0" in names and names == [variable.name for variable in optimizers[1].variables()]


def test_gradients_in_a_branch_of_a_function(eager):
    """A tape of a function gives gradients of variables inside of a branch or loop, where an optimizer applies them."""
    variable = tf2.Variable([1.0, 2.0])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer._create_slots([variable])

    @tf2.function
    def train(steps):
        for _ in tf2.range(steps):
            with tf2.GradientTape() as tape:
                loss = tf2.reduce_sum(variable * variable)
            if loss > 0.5:
                optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])

    train(tf2.constant(10))
    value, momentum = np.array([1.0, 2.0]), np.zeros(2)
    for _ in range(10):
        if np.sum(value**2) > 0.5:
            momentum = 0.9 * momentum + 2 * value
            value = value - 0.1 * momentum
    np.testing.assert_allclose(variable.numpy(), value, rtol=1e-5)


@pytest.mark.parametrize("kind", ["Adam", "Adagrad", "RMSProp", "Adadelta"])
def test_slots_of_a_variable_of_unknown_shape(kind):
    """The slots of a variable whose shape is known only when it is initialized take that shape."""
    v = tf.Variable(tf.placeholder_with_default(np.ones([3, 2], np.float32), [None, 2]), validate_shape=False)
    optimizer = getattr(tf.train, f"{kind}Optimizer")(0.1)
    train = optimizer.minimize(tf.reduce_sum(v * v))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(v).shape == (3, 2)
        shapes = {
            session.run(slot).shape for name in optimizer.get_slot_names() for slot in [optimizer.get_slot(v, name)]
        }
        assert shapes == {(3, 2)}


def test_copies():
    """An optimizer that has made no variables can be copied; one that has cannot."""
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9, name="mine")
    assert copy.deepcopy(optimizer).get_name() == "mine"
    optimizer.minimize(tf.square(tf.Variable(1.0)))
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(optimizer)


@pytest.mark.parametrize("slot", [False, True])
def test_variables_of_another_dtype_are_refused(slot):
    """An update op of resource variables wants them, and their slots, in its own dtype."""
    first = tf.Variable(np.ones(2, np.float32 if slot else np.float64), use_resource=True)
    second = tf.Variable(np.ones(2, np.float64), use_resource=True)
    ones = tf.ones([2])
    update = tf.raw_ops.ResourceApplyMomentum(var=first.handle, accum=second.handle, lr=0.1, grad=ones, momentum=0.9)
    rows = tf.raw_ops.ResourceSparseApplyMomentum(
        var=first.handle, accum=second.handle, lr=0.1, grad=ones, indices=[0, 1], momentum=0.9
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for op in (update, rows):
            with pytest.raises(tf.errors.InvalidArgumentError, match="float64"):
                session.run(op)
