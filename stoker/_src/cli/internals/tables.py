"""Maps TensorFlow's internal modules to stoker's modules, and internal names to their public names."""

from __future__ import annotations

_HERE = "stoker._src.cli.internals"
_FRAMEWORK, _UTIL, _DEFUN, _TEST = f"{_HERE}.framework", f"{_HERE}.util", f"{_HERE}.defun", f"{_HERE}.test_util"
_RECURRENT = f"{_HERE}.recurrent"
_GENERATED = f"{_HERE}.generated"
_OPS = "stoker._src.ops"
_COLUMNS = tuple(
    f"stoker._src.feature_column.{name}"
    for name in ("base", "numeric", "categorical", "combined", "embedding", "shared", "sequences", "transformation",
                 "input_layer", "linear_model", "layers", "parse_spec", "configs")
)  # fmt: skip

# Internal module -> where its names are looked up, in order. A public path is relative to the chosen API.
MODULES: dict[str, tuple[str, ...]] = {
    # -- framework
    "python.framework.ops": (
        _FRAMEWORK,
        "",
        "stoker._src.graph.graph",
        "stoker._src.graph.scopes",
        "stoker._src.graph.conversion",
        "stoker._src.graph.gradient_registry",
        "stoker._src.graph.indexed_slices",
        "stoker._src.runtime.eager.executor",
    ),
    "python.framework.dtypes": ("dtypes", "", "stoker._src.base.dtypes", _FRAMEWORK),
    "python.framework.tensor_shape": (_FRAMEWORK, "", "stoker._src.base.shapes"),
    "python.framework.tensor_util": ("", _FRAMEWORK, "stoker._src.graph.static_values", "stoker._src.graph.conversion"),
    "python.framework.tensor_spec": ("",),
    "python.framework.constant_op": ("", _FRAMEWORK),
    "python.framework.common_shapes": (_FRAMEWORK,),
    "python.framework.device": (_FRAMEWORK, "stoker._src.base.devices", ""),
    "python.framework.errors": ("errors", "", "stoker._src.base.errors"),
    "python.framework.errors_impl": ("errors", "", "stoker._src.base.errors"),
    "python.framework.func_graph": ("stoker._src.graph.function_graph",),
    "python.framework.function": (_DEFUN, "stoker._src.graph.function_graph"),
    "python.framework.graph_io": ("io",),
    "python.framework.graph_util": ("graph_util", ""),
    "python.framework.graph_util_impl": ("graph_util", "", "stoker._src.graph.graph_util"),
    "python.framework.importer": ("",),
    "python.framework.indexed_slices": ("", _FRAMEWORK, "stoker._src.graph.indexed_slices"),
    "python.framework.load_library": ("",),
    "python.framework.meta_graph": ("stoker._src.graph.interchange.meta_graph", "", "train"),
    "python.framework.op_def_registry": (_FRAMEWORK,),
    "python.framework.random_seed": ("random", ""),
    "python.framework.smart_cond": (_FRAMEWORK,),
    "python.framework.sparse_tensor": ("", "stoker._src.graph.sparse_tensor"),
    "python.framework.test_util": (_TEST, "test"),
    "python.framework.versions": ("version", ""),
    # -- feature columns
    "python.feature_column.feature_column": ("feature_column", *_COLUMNS),
    "python.feature_column.feature_column_lib": ("feature_column", *_COLUMNS),
    "python.feature_column.feature_column_v2": ("feature_column", *_COLUMNS),
    "python.feature_column.sequence_feature_column": ("feature_column", *_COLUMNS),
    "python.feature_column.serialization": ("stoker._src.feature_column.configs",),
    # -- ops
    "python.ops.array_grad": ("stoker._src.graph.gradient_registry",),
    "python.ops.math_grad": ("stoker._src.graph.gradient_registry",),
    "python.ops.array_ops": ("", _OPS + ".array.shaping", _OPS + ".array.joining", _OPS + ".array.ranges", _FRAMEWORK),
    "python.ops.array_ops_stack": ("",),
    "python.ops.bitwise_ops": ("bitwise",),
    "python.ops.candidate_sampling_ops": ("nn", "random"),
    "python.ops.check_ops": ("debugging", ""),
    "python.ops.clip_ops": ("",),
    "python.ops.cond": ("", _OPS + ".control_flow.branches_and_loops"),
    "python.ops.confusion_matrix": ("math", ""),
    "python.ops.control_flow_assert": ("",),
    "python.ops.control_flow_case": ("",),
    "python.ops.control_flow_ops": ("", _OPS + ".control_flow.branches_and_loops", _OPS + ".control_flow.grouping"),
    "python.ops.ctc_ops": ("nn",),
    "python.ops.custom_gradient": ("", _OPS + ".control_flow.custom_gradients"),
    "python.ops.data_flow_ops": ("queue", "", "lookup", _OPS + ".resources.staging_areas"),
    "python.ops.embedding_ops": ("nn", ""),
    "python.ops.functional_ops": ("",),
    "python.ops.gradient_checker": ("test",),
    "python.ops.gradients": ("", _OPS + ".control_flow.gradients"),
    "python.ops.gradients_impl": ("", _OPS + ".control_flow.gradients"),
    "python.ops.gradients_util": ("", _OPS + ".control_flow.gradients"),
    "python.ops.histogram_ops": ("",),
    "python.ops.image_ops": ("image", ""),
    "python.ops.image_ops_impl": ("image", ""),
    "python.ops.init_ops": ("initializers", "", _OPS + ".variables.initializers"),
    "python.ops.init_ops_v2": ("stoker.initializers", "stoker", _OPS + ".variables.initializers_v2"),
    "python.ops.io_ops": ("io", ""),
    "python.ops.linalg_ops": ("linalg", ""),
    "python.ops.linalg.linalg": ("linalg", ""),
    "python.ops.logging_ops": ("", "summary"),
    "python.ops.lookup_ops": ("contrib.lookup", "lookup", "", _OPS + ".resources.tables"),
    "python.ops.losses.losses": ("losses",),
    "python.ops.losses.losses_impl": ("losses",),
    "python.ops.losses.util": ("losses",),
    "python.ops.manip_ops": ("manip", ""),
    "python.ops.map_fn": ("",),
    "python.ops.math_ops": (
        "math",
        "",
        "linalg",
        _OPS + ".math.arithmetic",
        _OPS + ".math.unary_functions",
        _OPS + ".math.comparison",
        _OPS + ".array.casting",
        _FRAMEWORK,
    ),
    "python.ops.metrics": ("metrics",),
    "python.ops.metrics_impl": ("metrics",),
    "python.ops.nn": ("nn", ""),
    "python.ops.nn_impl": ("nn", "", "linalg"),
    "python.ops.nn_ops": ("nn", ""),
    "python.ops.numerics": ("", "debugging"),
    "python.ops.parsing_ops": ("io", ""),
    "python.ops.partitioned_variables": ("", _OPS + ".variables.partitioned"),
    "python.ops.ragged.ragged_tensor": ("", "ragged", _OPS + ".ragged.ragged_tensor"),
    "python.ops.random_ops": ("random", ""),
    "python.ops.ref_variable": (_OPS + ".variables.variables",),
    "python.ops.resource_variable_ops": (_FRAMEWORK, _OPS + ".variables.variables", ""),
    "python.ops.rnn": ("nn", "", "stoker._src.layers.rnn", _RECURRENT),
    "python.ops.rnn_cell": ("nn.rnn_cell",),
    "python.ops.rnn_cell_impl": ("nn.rnn_cell", _FRAMEWORK, "stoker._src.layers.rnn_cells", _RECURRENT),
    "python.ops.script_ops": ("",),
    "python.ops.session_ops": ("", _OPS + ".resources.session_tensors"),
    "python.ops.sets_impl": ("sets",),
    "python.ops.signal.signal": ("signal",),
    "python.ops.sort_ops": ("",),
    "python.ops.sparse_ops": ("sparse", ""),
    "python.ops.special_math_ops": ("math", "", "math.special"),
    "python.ops.spectral_ops": ("signal", "spectral"),
    "python.ops.standard_ops": ("",),
    "python.ops.state_ops": ("", _FRAMEWORK),
    "python.ops.stateless_random_ops": ("random", ""),
    "python.ops.summary_op_util": (_OPS + ".summary.summary_ops",),
    "python.ops.string_ops": ("strings", ""),
    "python.ops.summary_ops": ("summary",),
    "python.ops.template": ("", _OPS + ".variables.template"),
    "python.ops.tensor_array_ops": ("",),
    "python.ops.variable_scope": ("", _OPS + ".variables.variable_scope"),
    "python.ops.variables": (
        "",
        _OPS + ".variables.variables",
        _OPS + ".variables.variable_functions",
        _OPS + ".variables.creators",
        _OPS + ".variables.partitioned",
    ),
    "python.ops.weights_broadcast_ops": ("stoker._src.layers.weights",),
    "python.ops.while_loop": ("",),
    **{
        f"python.ops.gen_{family}_ops": (_GENERATED,)
        for family in (
            "array bitwise candidate_sampling control_flow ctc data_flow functional image io linalg list logging lookup manip math "
            "nn parsing random resource_variable script set sparse spectral state stateless_random string user"
        ).split()
    },
    "python.training.gen_training_ops": (_GENERATED,),
    "python.training.training_ops": (_GENERATED,),
    # -- platform, client
    "python.platform.app": ("app",),
    "python.platform.benchmark": ("test",),
    "python.platform.flags": ("flags", "app.flags"),
    "python.platform.gfile": ("gfile", "io.gfile"),
    "python.platform.googletest": (_TEST, "test"),
    "python.platform.resource_loader": ("resource_loader",),
    "python.platform.sysconfig": ("sysconfig",),
    "python.platform.test": ("test", _TEST),
    "python.platform.tf_logging": ("logging", "stoker._src.base.tf_logging"),
    "python.debug": (f"{_HERE}.debug",),
    "python.debug.wrappers.hooks": (f"{_HERE}.debug",),
    "python.client.device_lib": ("stoker._src.runtime.devices",),
    "python.client.session": ("", "stoker._src.runtime.session"),
    "python.client.timeline": ("stoker._src.runtime.trace",),
    # -- training
    **{
        f"python.training.{name}": ("train",)
        for name in (
            "adadelta adagrad adagrad_da adam basic_loops basic_session_run_hooks checkpoint_management checkpoint_utils coordinator device_setter "
            "ftrl gradient_descent input learning_rate_decay momentum monitored_session proximal_adagrad "
            "proximal_gradient_descent py_checkpoint_reader queue_runner queue_runner_impl rmsprop saver server_lib "
            "session_manager session_run_hook summary_io supervisor sync_replicas_optimizer training warm_starting_util"
        ).split()
    },
    "python.training.moving_averages": ("train", "stoker._src.train.optimizers.moving_averages"),
    "python.training.optimizer": ("train", "stoker._src.train.optimizers.optimizer"),
    "python.training.slot_creator": ("stoker._src.train.optimizers.slot_creator",),
    "python.training.training_util": ("train", "stoker._src.train.training_util"),
    # -- eager
    "python.eager.backprop": ("", _DEFUN),
    "python.eager.context": (_DEFUN, "", "stoker._src.graph.context"),
    "python.eager.def_function": ("", "stoker._src.runtime.functions.def_function"),
    "python.eager.function": (_DEFUN, "stoker._src.runtime.functions.def_function"),
    "python.eager.wrap_function": ("", "stoker._src.runtime.functions.wrap_function"),
    "python.eager.test": (_TEST, "test"),
    # -- layers, summary, io, util
    "python.layers.base": ("layers", "stoker._src.layers.base"),
    "python.layers.convolutional": ("layers",),
    "python.layers.core": ("layers",),
    "python.layers.layers": ("layers",),
    "python.layers.normalization": ("layers",),
    "python.layers.pooling": ("layers",),
    "python.layers.utils": (f"{_HERE}.layers_utils",),
    "python.summary.summary": ("summary",),
    "python.summary.summary_iterator": ("train",),
    "python.summary.writer.event_file_writer": ("stoker._src.summary.file_writer",),
    "python.summary.writer.writer": ("summary", "stoker._src.summary.file_writer"),
    "python.summary.writer.writer_cache": ("summary",),
    "python.profiler.model_analyzer": ("profiler",),
    "python.profiler.option_builder": ("profiler",),
    "python.lib.io.file_io": ("gfile", "io.gfile", _FRAMEWORK),
    "python.lib.io.python_io": ("python_io",),
    "python.lib.io.tf_record": ("python_io", "io"),
    "python.util.all_util": (_UTIL,),
    "python.util.compat": ("compat",),
    "python.util.decorator_utils": (_UTIL,),
    "python.util.deprecation": (_UTIL,),
    "python.util.function_utils": (_UTIL,),
    "python.util.keyword_args": (_UTIL,),
    "python.util.lazy_loader": (_UTIL,),
    "python.util.nest": ("nest", "stoker._src.base.nest"),
    "python.util.object_identity": (_UTIL,),
    "python.util.tf_contextlib": (_UTIL,),
    "python.util.tf_decorator": (_UTIL,),
    "python.util.tf_export": (_UTIL,),
    "python.util.tf_inspect": (_UTIL,),
    "python.util.tf_should_use": (_UTIL,),
    # -- keras
    "python.keras": ("keras",),
    **{
        f"python.keras.{name}": (f"keras.{name}", "keras")
        for name in (
            "activations backend callbacks constraints datasets initializers layers losses metrics models optimizers "
            "preprocessing regularizers utils"
        ).split()
    },
    "python.keras.engine": ("keras.layers", "keras.models", "keras"),
    **{
        f"python.keras.engine.{name}": ("keras.layers", "keras.models", "keras")
        for name in "base_layer input_layer input_spec network sequential training".split()
    },
    **{
        f"python.keras.layers.{name}": ("keras.layers",)
        for name in (
            "advanced_activations convolutional convolutional_recurrent core cudnn_recurrent embeddings local merge noise normalization "
            "pooling recurrent wrappers"
        ).split()
    },
    **{
        f"python.keras.utils.{name}": ("keras.utils", f"{_HERE}.layers_utils")
        for name in "conv_utils data_utils generic_utils layer_utils losses_utils multi_gpu_utils np_utils tf_utils vis_utils".split()
    },
    **{
        f"python.keras.preprocessing.{name}": (f"keras.preprocessing.{name}",) for name in "image sequence text".split()
    },
    # -- tools, saved_model and modules outside of python
    "python.tools.freeze_graph": (f"{_HERE}.freeze_graph",),
    "python.tools.inspect_checkpoint": (f"{_HERE}.inspect_checkpoint",),
    "python.tools.optimize_for_inference_lib": (f"{_HERE}.optimize_for_inference",),
    "python.tools.saved_model_utils": (f"{_HERE}.saved_model_utils",),
    "python.tools.strip_unused_lib": (f"{_HERE}.strip_unused",),
    "python.pywrap_tensorflow": ("train",),
    "python.saved_model.builder": ("saved_model.builder", "saved_model"),
    "python.saved_model.builder_impl": ("saved_model.builder", "saved_model"),
    "python.saved_model.constants": ("saved_model.constants", "saved_model"),
    "python.saved_model.loader": ("saved_model.loader", "saved_model"),
    "python.saved_model.loader_impl": ("saved_model.loader", "saved_model", f"{_HERE}.saved_model_utils"),
    "python.saved_model.main_op": ("saved_model.main_op", "saved_model"),
    "python.saved_model.main_op_impl": ("saved_model.main_op", "saved_model"),
    "python.saved_model.saved_model": ("saved_model",),
    "python.saved_model.signature_def_utils": ("saved_model.signature_def_utils", "saved_model"),
    "python.saved_model.signature_def_utils_impl": ("saved_model.signature_def_utils", "saved_model"),
    "python.saved_model.simple_save": ("saved_model",),
    "python.saved_model.utils": ("saved_model.utils", "saved_model"),
    "python.saved_model.utils_impl": ("saved_model.utils", "saved_model"),
    "python.saved_model.signature_constants": ("saved_model.signature_constants", "saved_model"),
    "python.saved_model.tag_constants": ("saved_model.tag_constants", "saved_model"),
    "examples.tutorials.mnist.input_data": ("stoker._src.cli.mnist",),
    "contrib.learn.python.learn.datasets.mnist": ("stoker._src.cli.mnist",),
    **{
        f"core.{name}_pb2": ("stoker._src.formats.protos", f"tensorboard.compat.proto.{name.rpartition('.')[2]}_pb2")
        for name in (
            "framework.attr_value framework.function framework.graph framework.node_def framework.op_def framework.step_stats "
            "framework.summary framework.tensor framework.tensor_shape framework.types framework.variable framework.versions "
            "protobuf.config protobuf.cluster protobuf.meta_graph protobuf.rewriter_config protobuf.saver util.event"
        ).split()
    },
    **{
        f"core.{name}_pb2": ("stoker._src.formats.protos",)
        for name in "example.example example.feature protobuf.queue_runner protobuf.tensorflow_server".split()
    },
}

# The folders of tf.contrib whose modules programs import by their full names: {room: modules below it}. Their names are public in the room.
_CONTRIB = {
    "crf": "python.ops python.ops.crf",
    "cudnn_rnn": "python.layers python.layers.cudnn_rnn python.ops python.ops.cudnn_rnn_ops",
    "framework": "python.framework python.framework.checkpoint_utils python.framework.tensor_util python.ops "
    "python.ops.ops python.ops.variables",
    "layers": "python.layers python.layers.embedding_ops python.layers.encoders python.layers.initializers python.layers.layers "
    "python.layers.normalization python.layers.optimizers python.layers.regularizers python.layers.summaries",
    "legacy_seq2seq": "python.ops python.ops.seq2seq",
    "losses": "python.losses python.losses.loss_ops",
    "eager": "python python.tfe",
    "opt": "python.training python.training.external_optimizer",
    "image": "python.ops python.ops.image_ops python.ops.dense_image_warp",
    "learn": "python.learn",
    "metrics": "python.ops python.ops.metric_ops",
    "rnn": "python.ops python.ops.core_rnn_cell python.ops.fused_rnn_cell python.ops.gru_ops python.ops.lstm_ops python.ops.rnn "
    "python.ops.rnn_cell",
    "seq2seq": "python.ops python.ops.attention_wrapper python.ops.basic_decoder python.ops.beam_search_decoder "
    "python.ops.beam_search_ops python.ops.decoder python.ops.helper python.ops.loss",
    "slim": "python.slim python.slim.learning python.slim.evaluation python.slim.data python.slim.data.dataset "
    "python.slim.data.dataset_data_provider python.slim.data.data_decoder python.slim.data.data_provider "
    "python.slim.data.parallel_reader python.slim.data.prefetch_queue python.slim.data.tfexample_decoder python.slim.model_analyzer "
    "python.slim.queues python.slim.summaries",
    "training": "python.training python.training.evaluation python.training.hparam python.training.training",
}
# Those of them that are public modules, too.
_OWN_ROOMS = {
    *(
        ("slim", name)
        for name in "data_decoder data_provider dataset dataset_data_provider evaluation learning model_analyzer parallel_reader prefetch_queue queues summaries tfexample_decoder".split()
    ),
}
MODULES.update({f"contrib.{room}": (f"contrib.{room}",) for room in _CONTRIB})
MODULES.update(
    {
        f"contrib.{room}.{name}": (
            *((f"contrib.{room}.{name.rpartition('.')[2]}",) if (room, name.rpartition(".")[2]) in _OWN_ROOMS else ()),
            f"contrib.{room}",
        )
        for room, names in _CONTRIB.items()
        for name in names.split()
    }
)
MODULES.update(
    {
        f"contrib.slim.{place}.{name}": (f"contrib.slim.nets.{name}", "contrib.slim")
        for place in ("nets", "python.slim.nets")
        for name in ("alexnet", "inception", "resnet_utils", "resnet_v1", "resnet_v2", "vgg")
    }
)
MODULES.update(
    {f"contrib.slim.python.slim.nets.inception_{kind}": ("contrib.slim.nets.inception",) for kind in ("v1", "v3")}
)
MODULES["contrib.layers.python.layers.utils"] = ("contrib.layers.utils",)
MODULES["contrib.learn.python.learn.preprocessing"] = ("contrib.learn.preprocessing",)
MODULES["contrib.distributions"] = ("contrib.distributions",)
MODULES["contrib.distributions.python.ops"] = ("contrib.distributions",)
MODULES["contrib.distributions.python.ops.bijectors"] = ("contrib.distributions.bijectors",)
MODULES["contrib.rnn.python.ops.core_rnn_cell"] = ("contrib.rnn", "stoker._src.contrib.rnn.linear")
MODULES["contrib.seq2seq.python.ops.attention_wrapper"] = (
    "contrib.seq2seq",
    "stoker._src.contrib.seq2seq.wrapper",
    "stoker._src.contrib.seq2seq.mechanisms",
)

# Public modules listed above that stoker does not have. Names are not looked up in them.
AWAITED: frozenset[str] = frozenset()

# (internal module, name) -> its name in the module where it is looked up.
RENAMED: dict[tuple[str, str], str] = {
    ("contrib.rnn.python.ops.core_rnn_cell", "_linear"): "linear",
    ("contrib.seq2seq.python.ops.attention_wrapper", "_BaseAttentionMechanism"): "BaseAttentionMechanism",
    ("python.framework.test_util", "TensorFlowTestCase"): "TestCase",
    ("python.framework.tensor_util", "MakeNdarray"): "make_ndarray",
    ("python.framework.tensor_util", "ShapeEquals"): "shape_equals",
    ("python.framework.tensor_util", "TensorShapeProtoToList"): "tensor_shape_proto_to_list",
    ("python.framework.tensor_util", "is_tf_type"): "is_tensor",
    ("python.framework.tensor_util", "constant_value_as_shape"): "public_constant_value_as_shape",
    ("python.framework.tensor_shape", "as_shape"): "as_tensor_shape",
    ("python.framework.random_seed", "set_seed"): "set_random_seed",
    ("python.ops.control_flow_ops", "cond_for_tf_v2"): "cond_v2",
    ("python.ops.cond", "cond_for_tf_v2"): "cond_v2",
    ("python.ops.variables", "VariableV1"): "Variable",
    ("python.ops.resource_variable_ops", "BaseResourceVariable"): "ResourceVariable",
    ("python.ops.rnn", "_best_effort_input_batch_size"): "best_effort_input_batch_size",
    ("python.ops.rnn", "_concat"): "concat_sizes",
    ("python.ops.rnn", "_transpose_batch_time"): "_swapped",
    ("python.ops.rnn_cell_impl", "_concat"): "concat_sizes",
    ("python.ops.rnn_cell_impl", "_LayerRNNCell"): "LayerRNNCell",
    ("python.ops.rnn_cell_impl", "_zero_state_tensors"): "zero_tensors",
    ("python.ops.gradients_util", "IsTrainable"): "is_trainable",
    ("python.ops.gradients_impl", "IsTrainable"): "is_trainable",
    ("python.ops.script_ops", "eager_py_func"): "py_function",
    ("python.ops.lookup_ops", "StaticHashTableV1"): "StaticHashTable",
    ("python.platform.benchmark", "TensorFlowBenchmark"): "Benchmark",
    ("python.eager.def_function", "Function"): "PolymorphicFunction",
    ("python.eager.function", "Function"): "PolymorphicFunction",
    ("python.layers.convolutional", "deconvolution2d"): "conv2d_transpose",
    ("python.layers.convolutional", "deconv2d"): "conv2d_transpose",
    ("python.layers.convolutional", "deconv3d"): "conv3d_transpose",
    ("python.layers.convolutional", "convolution1d"): "conv1d",
    ("python.layers.convolutional", "convolution2d"): "conv2d",
    ("python.layers.convolutional", "convolution3d"): "conv3d",
    ("python.layers.convolutional", "convolution2d_transpose"): "conv2d_transpose",
    ("python.layers.convolutional", "convolution3d_transpose"): "conv3d_transpose",
    ("python.layers.convolutional", "separable_convolution2d"): "separable_conv2d",
    ("python.layers.convolutional", "Convolution1D"): "Conv1D",
    ("python.layers.convolutional", "Convolution2D"): "Conv2D",
    ("python.layers.convolutional", "Convolution3D"): "Conv3D",
    ("python.layers.convolutional", "Convolution2DTranspose"): "Conv2DTranspose",
    ("python.layers.convolutional", "Convolution3DTranspose"): "Conv3DTranspose",
    ("python.layers.convolutional", "Deconvolution2D"): "Conv2DTranspose",
    ("python.layers.convolutional", "Deconv2D"): "Conv2DTranspose",
    ("python.layers.convolutional", "Deconv3D"): "Conv3DTranspose",
    ("python.layers.convolutional", "SeparableConvolution2D"): "SeparableConv2D",
    ("python.layers.core", "FullyConnected"): "Dense",
    ("python.layers.core", "fully_connected"): "dense",
    ("python.layers.normalization", "BatchNorm"): "BatchNormalization",
    ("python.layers.normalization", "batch_norm"): "batch_normalization",
    ("python.layers.pooling", "AvgPool2D"): "AveragePooling2D",
    ("python.layers.pooling", "MaxPool2D"): "MaxPooling2D",
    ("python.layers.pooling", "avg_pool2d"): "average_pooling2d",
    ("python.layers.pooling", "max_pool2d"): "max_pooling2d",
    **{("python.ops.sets_impl", f"set_{name}"): name for name in "difference intersection size union".split()},
    **{
        ("python.ops.sparse_ops", f"sparse_{name}"): name
        for name in "bincount cross cross_hashed expand_dims eye".split()
    },
    **{("python.ops.string_ops", f"string_{name}"): name for name in "format length".split()},
    **{
        ("python.ops.stateless_random_ops", f"stateless_random_{name}"): f"stateless_{name}"
        for name in "binomial gamma normal poisson uniform".split()
    },
    **{
        ("python.lib.io.file_io", f"{ours}{suffix}"): public
        for ours, public in {
            "FileIO": "GFile",
            "copy": "Copy",
            "create_dir": "MkDir",
            "delete_file": "Remove",
            "delete_recursively": "DeleteRecursively",
            "file_exists": "Exists",
            "get_matching_files": "Glob",
            "is_directory": "IsDirectory",
            "list_directory": "ListDirectory",
            "recursive_create_dir": "MakeDirs",
            "rename": "Rename",
            "stat": "Stat",
            "walk": "Walk",
        }.items()
        for suffix in ("", "_v2")
    },
}
