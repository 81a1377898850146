# What programs use of TensorFlow's internal modules: a name and a use of each.
import os
import tempfile

import numpy as np
from tensorflow.core.framework import attr_value_pb2, graph_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import device_lib, session, timeline
from tensorflow.python.eager import backprop, context
from tensorflow.python.framework import (
    common_shapes,
    constant_op,
    dtypes,
    errors,
    errors_impl,
    function,
    importer,
    op_def_registry,
    ops,
    random_seed,
    smart_cond,
    sparse_tensor,
    tensor_shape,
    tensor_util,
)
from tensorflow.python.framework import device as pydev
from tensorflow.python.layers import base, utils
from tensorflow.python.layers import core as core_layers
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import (
    array_ops,
    bitwise_ops,
    candidate_sampling_ops,
    check_ops,
    clip_ops,
    confusion_matrix,
    control_flow_ops,
    custom_gradient,
    data_flow_ops,
    embedding_ops,
    gen_array_ops,
    gen_control_flow_ops,
    gen_math_ops,
    gen_nn_ops,
    gen_state_ops,
    gradient_checker,
    gradients_impl,
    init_ops,
    linalg_ops,
    lookup_ops,
    map_fn,
    math_ops,
    nn_impl,
    nn_ops,
    partitioned_variables,
    random_ops,
    resource_variable_ops,
    rnn,
    rnn_cell_impl,
    script_ops,
    sort_ops,
    sparse_ops,
    special_math_ops,
    state_ops,
    string_ops,
    template,
    tensor_array_ops,
    variable_scope,
    variables,
)
from tensorflow.python.ops.losses import losses_impl
from tensorflow.python.ops.losses import util as losses_util
from tensorflow.python.platform import googletest, tf_logging
from tensorflow.python.training import adam, moving_averages, optimizer, slot_creator, training_util
from tensorflow.python.util import compat, deprecation, function_utils, nest, tf_contextlib, tf_decorator, tf_inspect


def T(label, f):
    try:
        print(label, f())
    except Exception as e:
        print(label, "raises", type(e).__name__, str(e).split("\n")[0][:120])


PATH = os.path.join(tempfile.mkdtemp(), "x.txt")
sess = session.Session(config=config_pb2.ConfigProto(allow_soft_placement=True))


def R(t):
    return np.asarray(sess.run(t)).tolist()


a = constant_op.constant([[1.0, 2.0], [3.0, 4.0]], name="a")
T(1, lambda: R(gen_math_ops.mat_mul(a, a, False, True)))
T(2, lambda: R(gen_array_ops.concat_v2([a, a], 0)))
T(3, lambda: R(gen_nn_ops.relu(a - 2.0)))
T(4, lambda: R(gen_math_ops._sum(a, [0], keep_dims=True)))
T(5, lambda: R(array_ops.shape_internal(a, optimize=False)))
T(6, lambda: R(ops.convert_to_tensor(math_ops.reduced_shape([2, 3, 4], [0, 2]))))
T(7, lambda: R(control_flow_ops.with_dependencies([control_flow_ops.no_op()], a)))
T(8, lambda: nest.flatten({"b": [1, (2, 3)], "a": 4}))
T(9, lambda: nest.map_structure(lambda x: x + 1, [1, (2,)]))
T(10, lambda: ops.name_from_scope_name("a/b/"))
T(11, lambda: [t.dtype.name for t in ops.convert_n_to_tensor([1, 2.0])])
T(12, lambda: ops.internal_convert_to_tensor([1, 2], dtype=dtypes.float32).dtype.name)
T(13, lambda: callable(ops.get_gradient_function(math_ops.tanh(a).op)))
T(14, lambda: ops.strip_name_scope("a/b/c", "a/b"))
T(15, lambda: ops.prepend_name_scope("^c", "a/b"))
T(16, lambda: str(tensor_shape.TensorShape([1, None]).merge_with([None, 2])))
T(17, lambda: tensor_util.constant_value(array_ops.stack([1, 2])).tolist())
T(18, lambda: tensor_util.MakeNdarray(tensor_util.make_tensor_proto([1, 2])).tolist())
T(19, lambda: str(tensor_util.constant_value_as_shape(constant_op.constant([2, -1]))))


@function.Defun(dtypes.float32, dtypes.float32)
def f(x, y):
    return x * y, x + y


T(20, lambda: [R(t) for t in f(a, a)])
T(21, lambda: R(gradients_impl.gradients(f(a, 2.0 * a)[0], a)[0]))


@function.Defun(dtypes.float32, python_grad_func=lambda op, g: g * 10.0)
def g(x):
    return x * 2.0


T(22, lambda: R(gradients_impl.gradients(g(a), a)[0]))


@function.Defun(dtypes.float32, dtypes.float32)
def hg(x, dy):
    return dy * 7.0


@function.Defun(dtypes.float32, grad_func=hg)
def h(x):
    return x * 2.0


T(23, lambda: R(gradients_impl.gradients(h(a), a)[0]))
T(24, lambda: smart_cond.smart_cond(True, lambda: 1, lambda: 2))
T(
    25,
    lambda: R(smart_cond.smart_cond(math_ops.less(array_ops.placeholder_with_default(1, []), 2), lambda: 1, lambda: 2)),
)
T(26, lambda: str(common_shapes.broadcast_shape(tensor_shape.TensorShape([1, 3]), tensor_shape.TensorShape([2, 1]))))
T(27, lambda: pydev.canonical_name("/cpu:0"))
T(28, lambda: utils.normalize_tuple(2, 3, "k"))
T(29, lambda: utils.convert_data_format("channels_last", 4))
T(30, lambda: utils.conv_output_length(10, 3, "valid", 2))
T(31, lambda: utils.deconv_output_length(5, 3, "valid", 2))
T(32, lambda: utils.constant_value(constant_op.constant(True)))
T(33, lambda: utils.smart_cond(constant_op.constant(False), lambda: 1, lambda: 2))
T(34, lambda: utils.normalize_tuple(2, 3, "k"))
with variable_scope.variable_scope("vs"):
    v = variable_scope.get_variable("v", [2], initializer=init_ops.zeros_initializer())
u = moving_averages.assign_moving_average(v, constant_op.constant([1.0, 2.0]), 0.9, zero_debias=False)
sess.run(variables.global_variables_initializer())
T(35, lambda: R(u))
T(36, lambda: v.name)
T(37, lambda: resource_variable_ops.is_resource_variable(v))
T(38, lambda: isinstance(v, variables.Variable))
T(39, lambda: R(state_ops.assign_add(v, [1.0, 1.0])))
T(40, lambda: training_util.get_or_create_global_step().name)
T(41, lambda: optimizer.Optimizer.__name__)
T(42, lambda: adam.AdamOptimizer(0.1).get_name())
T(43, lambda: function_utils.fn_args(lambda a, b, c=1: 0))
T(44, lambda: tf_inspect.getfullargspec(lambda a, b=2: 0).args)


@tf_contextlib.contextmanager
def cm():
    yield 3


with cm() as z:
    T(45, lambda: z)
T(46, lambda: compat.as_bytes("x"))
T(47, lambda: next(d.device_type for d in device_lib.list_local_devices()))
T(48, lambda: dtypes.float32_ref.name)
T(49, lambda: dtypes.as_dtype("float32") == dtypes.float32)
T(50, lambda: context.executing_eagerly())
with context.eager_mode():
    T(51, lambda: context.executing_eagerly())
    T(52, lambda: float(backprop.gradients_function(lambda x: x * x)(3.0)[0]))
    T(53, lambda: [float(x) for x in (lambda r: (r[0], r[1][0]))(backprop.val_and_grad_function(lambda x: x * x)(3.0))])
T(
    54,
    lambda: R(
        rnn._transpose_batch_time(array_ops.zeros([2, 3, 1])).__class__
        and array_ops.shape(rnn._transpose_batch_time(array_ops.zeros([2, 3, 1])))
    ),
)
T(55, lambda: rnn_cell_impl.RNNCell.__name__)
T(56, lambda: rnn_cell_impl._BIAS_VARIABLE_NAME + rnn_cell_impl._WEIGHTS_VARIABLE_NAME)
T(57, lambda: rnn_cell_impl.LSTMStateTuple(1, 2).h)
T(59, lambda: R(clip_ops.clip_by_value(a, 1.0, 2.0)))
T(60, lambda: check_ops.assert_equal(1, 1) is not None)
T(61, lambda: data_flow_ops.FIFOQueue(3, [dtypes.float32]).name)
T(62, lambda: R(linalg_ops.norm(a)))
T(63, lambda: R(sparse_ops.sparse_tensor_to_dense(sparse_tensor.SparseTensor([[0]], [1], [2]))))
T(64, lambda: R(string_ops.string_join([constant_op.constant("a"), constant_op.constant("b")])))
T(66, lambda: R(map_fn.map_fn(lambda x: x * 2, a)))
T(
    67,
    lambda: (
        op_def_registry.get("MatMul").name
        if hasattr(op_def_registry, "get")
        else op_def_registry.get_registered_ops()["MatMul"].name
    ),
)
T(68, lambda: base.Layer.__name__)
T(69, lambda: core_layers.Dense(3).units)
T(70, lambda: R(losses_impl.mean_squared_error(a, a + 1.0)))
T(71, lambda: losses_util.get_regularization_losses())
T(72, lambda: graph_pb2.GraphDef().FromString(b"").node.__len__())
T(73, lambda: types_pb2.DT_FLOAT)
T(74, lambda: attr_value_pb2.AttrValue(i=3).i)
T(75, lambda: file_io.file_exists("/tmp"))
file_io.write_string_to_file(PATH, "hello")
T(76, lambda: file_io.read_file_to_string(PATH))
T(77, lambda: R(custom_gradient.custom_gradient(lambda x: (x * 2.0, lambda dy: dy * 5.0))(a)))
T(78, lambda: gradient_checker.compute_gradient_error.__name__)
T(79, lambda: errors_impl.NotFoundError is errors.NotFoundError)
T(80, lambda: tf_logging.INFO)
T(81, lambda: R(math_ops.argmax(a, 1)))
T(82, lambda: R(math_ops.reduce_sum(a, axis=[0], keepdims=True)))
T(83, lambda: R(array_ops.where(a > 2.0, a, -a)))
T(84, lambda: R(array_ops.gather(a, [1])))
T(85, lambda: R(nn_impl.l2_normalize(a, 1)))
T(86, lambda: R(nn_ops.softmax(a)))
T(87, lambda: R(special_math_ops.einsum("ij,jk->ik", a, a)))
T(88, lambda: R(sort_ops.sort(a, direction="DESCENDING")))
T(90, lambda: R(bitwise_ops.bitwise_and(3, 5)))
T(91, lambda: R(confusion_matrix.confusion_matrix([0, 1], [1, 1])))
T(92, lambda: len(candidate_sampling_ops.uniform_candidate_sampler([[1]], 1, 2, True, 5)))
T(93, lambda: isinstance(a, ops.Tensor))
T(94, lambda: isinstance(a.op, ops.Operation))
T(95, lambda: ops.get_default_graph() is a.graph)
T(96, lambda: ops.GraphKeys.UPDATE_OPS)
T(97, lambda: R(tensor_array_ops.TensorArray(dtypes.float32, 1).write(0, 1.0).stack()))
T(98, lambda: importer.import_graph_def(graph_pb2.GraphDef()))
T(99, lambda: isinstance(partitioned_variables.fixed_size_partitioner(2), object))
T(100, lambda: template.make_template("t", lambda: 1)())
T(101, lambda: session.InteractiveSession.__name__)
T(102, lambda: timeline.Timeline.__name__)
T(103, lambda: R(script_ops.py_func(lambda x: x + 1, [a], dtypes.float32)))
T(104, lambda: slot_creator.create_zeros_slot(v, "slot").name)
T(105, lambda: R(gen_state_ops.assign(v, [5.0, 6.0])))
T(106, lambda: gen_control_flow_ops.no_op().type)
T(107, lambda: R(array_ops.boolean_mask(a, [True, False])))
T(108, lambda: R(embedding_ops.embedding_lookup(a, [0])))
T(109, lambda: R(lookup_ops.tables_initializer()))
T(110, lambda: R(array_ops.gather_v2(a, [1])))
T(111, lambda: R(math_ops.reduce_sum_v1(a, 1)))
T(112, lambda: R(math_ops.matvec(a, [1.0, 1.0])))
T(113, lambda: deprecation.deprecated(None, "x")(lambda: 3)())
T(114, lambda: deprecation.deprecated_argument_lookup("a", None, "b", 3))
T(115, lambda: tf_decorator.unwrap(len)[1])
T(116, lambda: ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES, "vs")[0].name)
T(117, lambda: R(array_ops.zeros_like(a)))
with ops.name_scope("q", values=[a]) as sc:
    T(118, lambda: sc)
with ops.control_dependencies([a]):
    T(119, lambda: len(array_ops.identity(a).op.control_inputs))
with ops.colocate_with(a.op):
    T(120, lambda: array_ops.identity(a).op.colocation_groups())


@ops.RegisterGradient("MyG")
def _g(op, dy):
    return dy * 100.0


with ops.get_default_graph().gradient_override_map({"Identity": "MyG"}):
    o = array_ops.identity(a)
T(121, lambda: R(gradients_impl.gradients(o, a)[0]))
ops.NotDifferentiable("FooBar")
T(123, lambda: googletest.main.__name__)
T(124, lambda: R(random_ops.random_uniform([2], seed=3)))
T(125, lambda: random_seed.get_seed(5))
