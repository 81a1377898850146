"""`tf.contrib.layers` without convolutions: dense layers, pooling, dropout, shapes, and repeated layers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant, named
from stoker._src.contrib.framework.arg_scopes import add_arg_scope
from stoker._src.contrib.framework.variables import model_variable
from stoker._src.contrib.layers.common import (
    add_to_collections,
    both,
    channel_dimension,
    checked_layout,
    collect_named_outputs,
    finished,
    get_variable_collections,
    last_dimension,
    layer_scope,
)
from stoker._src.graph import conversion, keys, public, scopes, sparse_tensor
from stoker._src.layers import core, pooling
from stoker._src.ops.array import casting, constants, gathering, joining, selection, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import comparison, reductions, sequences
from stoker._src.ops.nn import activations, pool_api
from stoker._src.ops.nn import bias as nn_bias
from stoker._src.ops.nn import softmax as nn_softmax
from stoker._src.ops.variables import initializers, regularizers, variable_scope

_RELU = activations.relu
_XAVIER = regularizers.xavier_initializer()
_ZEROS = initializers.Zeros()


@export(v1=both("fully_connected"))
@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = _RELU,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A dense layer over the last dimension, with bias or normalizer, and activation.

    Args:
        inputs: a tensor of rank 2 or more.
        num_outputs: the number of outputs.
        others: those of `convolution`.

    Raises:
        ValueError: `num_outputs` is not an integer, or the rank is below 2.
    """
    if isinstance(num_outputs, bool) or not hasattr(num_outputs, "__index__"):
        raise ValueError(f"num_outputs type should be one of {[int]}, got {type(num_outputs)}.")
    with layer_scope(scope, "fully_connected", inputs, reuse) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        layer = core.Dense(
            units=num_outputs,
            activation=None,
            use_bias=not normalizer_fn and bool(biases_initializer),
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            dtype=inputs.dtype.base_dtype,
            _scope=opened,
            _reuse=reuse,
        )
        outputs = layer.apply(inputs)
        add_to_collections(layer.kernel, variables_collections, "weights")
        if layer.bias is not None:
            add_to_collections(layer.bias, variables_collections, "biases")
        return finished(outputs, opened.name, activation_fn, outputs_collections, normalizer_fn, normalizer_params)


# As in TensorFlow these have no defaults of their own in `arg_scope`: they are those of `fully_connected`.
linear = functools.partial(fully_connected, activation_fn=None)
relu = functools.partial(fully_connected, activation_fn=_RELU)
relu6 = functools.partial(fully_connected, activation_fn=activations.relu6)
elu = functools.partial(fully_connected, activation_fn=activations.elu)
for _name in ("linear", "relu", "relu6", "elu"):
    export_constant(__name__, _name, v1=both(_name))
export_constant(__name__, "fully_connected", v1="contrib.slim.fc")


@export(v1=both("bias_add"))
@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = _ZEROS,
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Adds a variable `biases` to each channel. The arguments are those of `convolution`.

    Raises:
        ValueError: the data format is unknown, or the rank or the number of channels is.
    """
    checked_layout(data_format)
    with variable_scope.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        channels = channel_dimension(inputs.get_shape(), data_format, min_rank=2)
        if channels is None:
            raise ValueError("`C` dimension must be known but is None")
        biases = model_variable(
            "biases",
            shape=[channels],
            dtype=inputs.dtype.base_dtype,
            initializer=initializer,
            regularizer=regularizer,
            collections=get_variable_collections(variables_collections, "biases"),
            trainable=trainable,
        )
        outputs = nn_bias.bias_add(inputs, biases, data_format=data_format)
        return finished(outputs, opened.name, activation_fn, outputs_collections)


@export(v1=both("dropout"))
@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """Sets elements to zero at random and scales the others by 1 / keep_prob. Outside of training it changes nothing.

    Args:
        inputs: a tensor.
        keep_prob: the probability that an element is kept.
        noise_shape: the shape of the decisions, which broadcasts to the input's.
        is_training: a Python bool or a tensor.
        outputs_collections, scope: as in `convolution`.
        seed: the seed of the decisions.
    """
    with layer_scope(scope, "Dropout", inputs, None) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        layer = core.Dropout(rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=opened.name, _scope=opened)
        outputs = layer.apply(inputs, training=is_training)
        return collect_named_outputs(outputs_collections, opened.name, outputs)


@export(v1=both("flatten"))
@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """Reshapes to [batch, elements of an example]."""
    with scopes.NameScope(scope, "Flatten", [inputs]) as opened:
        outputs = core.flatten(conversion.convert_to_tensor(inputs))
        return collect_named_outputs(outputs_collections, opened, outputs)


def _pooled(layer: Any, default: str, layouts: tuple[str, str], names: list[str]) -> Callable[..., Any]:
    words = f"The {'largest' if default.startswith('Max') else 'mean'} value of each window"

    @export(v1=names)
    @add_arg_scope
    @named(names[0].rpartition(".")[2], f"{words}. The arguments are those of `convolution`.")
    def pool_windows(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = layouts[1],
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        layout = checked_layout(data_format, layouts)
        with scopes.NameScope(scope, default, [inputs]) as opened:
            inputs = conversion.convert_to_tensor(inputs)
            made = layer(kernel_size, stride, padding=padding, data_format=layout, _scope=opened)
            return collect_named_outputs(outputs_collections, opened, made.apply(inputs))

    return pool_windows


_FLAT, _DEEP = ("NCHW", "NHWC"), ("NCDHW", "NDHWC")
avg_pool2d = _pooled(pooling.AveragePooling2D, "AvgPool2D", _FLAT, both("avg_pool2d"))
max_pool2d = _pooled(pooling.MaxPooling2D, "MaxPool2D", _FLAT, both("max_pool2d"))
avg_pool3d = _pooled(pooling.AveragePooling3D, "AvgPool3D", _DEEP, both("avg_pool3d"))
max_pool3d = _pooled(pooling.MaxPooling3D, "MaxPool3D", _DEEP, both("max_pool3d"))


@export(v1=both("pool"))
@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Pools windows over any number of spatial dimensions.

    Args:
        pooling_type: "MAX" or "AVG".
        dilation_rate: the dilation of the window.
        others: those of `convolution`.

    Raises:
        ValueError: the rank is unknown or below 3.
    """
    # The scope has the name of the op, as in TensorFlow.
    with scopes.NameScope(scope, f"{pooling_type.lower()}_pool", [inputs]) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        if rank is None:
            raise ValueError("Rank of inputs must be known")
        if rank < 3:
            raise ValueError("Rank of inputs must be >= 3")
        count = rank - 2
        many = [list(each) if isinstance(each, (list, tuple)) else [each] * count for each in (kernel_size, dilation_rate, stride)]  # fmt: skip
        outputs = pool_api.pool(
            inputs,
            many[0],
            pooling_type,
            padding,
            dilation_rate=many[1],
            strides=many[2],
            data_format=data_format,
            name=opened,
        )
        return collect_named_outputs(outputs_collections, opened, outputs)


@export(v1=both("one_hot_encoding"))
@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Turns labels into rows with `on_value` at the label."""
    with scopes.NameScope(scope, "OneHotEncoding", [labels, num_classes]) as opened:
        labels = conversion.convert_to_tensor(labels)
        if labels.dtype == dtypes.int32:
            labels = casting.cast(labels, dtypes.int64)
        outputs = selection.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, opened, outputs)


@export(v1=both("softmax"))
@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """The softmax over the last dimension of logits of any rank."""
    with variable_scope.variable_scope(scope, "softmax", [logits]):
        logits = conversion.convert_to_tensor(logits)
        rows = shaping.reshape(logits, [-1, last_dimension(logits.get_shape(), min_rank=2)])
        outputs = shaping.reshape(nn_softmax.softmax(rows), shaping.shape(logits))
        outputs.set_shape(logits.get_shape())
        return outputs


@export(v1=both("spatial_softmax"))
@add_arg_scope
def spatial_softmax(
    features: Any,
    temperature: Any = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Any:
    """The expected position in the image of each channel, under the softmax of its pixels (Finn et al., 2016).

    Args:
        features: images.
        temperature: the value at which the variable `temperature` starts; 1 by default.
        name: the scope.
        variables_collections: collections of the temperature.
        trainable: whether the temperature is trained.
        data_format: "NHWC" or "NCHW".

    Returns:
        [batch, 2 * channels]: the position of each channel along the height and along the width, between -1 and 1.
    """
    with variable_scope.variable_scope(name, "spatial_softmax"):
        checked_layout(data_format)
        features = conversion.convert_to_tensor(features)
        if data_format == "NCHW":
            features = shaping.transpose(features, [0, 2, 3, 1])
        shape, sizes = features.get_shape(), shaping.shape(features)
        height, width, channels = (sizes[i] if shape[i].value is None else shape[i].value for i in (1, 2, 3))
        start = initializers.Ones() if temperature is None else initializers.Constant(temperature)
        heat = model_variable(
            "temperature",
            shape=(),
            dtype=dtypes.float32,
            initializer=start,
            collections=variables_collections,
            trainable=trainable,
        )
        # As in TensorFlow the first coordinate runs along the height.
        down, across = sequences.meshgrid(
            sequences.linspace(-1.0, 1.0, num=height), sequences.linspace(-1.0, 1.0, num=width), indexing="ij"
        )
        pixels = shaping.reshape(shaping.transpose(features, [0, 3, 1, 2]), [-1, height * width])
        attention = nn_softmax.softmax(pixels / heat)
        places = [
            reductions.reduce_sum(shaping.reshape(each, [-1]) * attention, [1], keepdims=True)
            for each in (down, across)
        ]
        outputs = shaping.reshape(joining.concat(places, 1), [-1, channels * 2])
        outputs.set_shape([None, None if shape[3].value is None else shape[3].value * 2])
        return outputs


@export(v1=both("maxout"))
@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Any:
    """The largest of each group of features, of which there are `num_units` (Goodfellow et al., 2013).

    Raises:
        ValueError: the number of features is unknown or not a multiple of `num_units`.
    """
    with scopes.NameScope(scope, "MaxOut", [inputs]):
        inputs = conversion.convert_to_tensor(inputs)
        sizes = inputs.get_shape().as_list()
        features = sizes[axis]
        if not features or features % num_units:
            raise ValueError(f"number of features({features}) is not a multiple of num_units({num_units})")
        sizes[axis] = num_units
        sizes = [-1 if size is None else size for size in sizes]
        return shaping.reshape(
            reductions.reduce_max(shaping.reshape(inputs, [*sizes, features // num_units]), -1), sizes
        )


@export(v1=both("repeat"))
def repeat(inputs: Any, repetitions: int, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies a layer several times: `repeat(x, 3, conv2d, 64, [3, 3], scope="conv1")` has the scopes conv1/conv1_1 and so on."""
    scope = kwargs.pop("scope", None)
    with variable_scope.variable_scope(scope, "Repeat", [inputs]):
        inputs = conversion.convert_to_tensor(inputs)
        name = _scope_of(layer, "repeat") if scope is None else scope
        outputs = inputs
        for i in range(repetitions):
            outputs = layer(outputs, *args, **kwargs, scope=f"{name}_{i + 1}")
        return outputs


@export(v1=both("stack"))
def stack(inputs: Any, layer: Any, stack_args: Any, **kwargs: Any) -> Any:
    """Applies a layer once with each of several arguments: `stack(x, fully_connected, [32, 64], scope="fc")`.

    Raises:
        ValueError: `stack_args` is not a list or tuple.
    """
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, (list, tuple)):
        raise ValueError("stack_args need to be a list or tuple")
    with variable_scope.variable_scope(scope, "Stack", [inputs]):
        inputs = conversion.convert_to_tensor(inputs)
        name = _scope_of(layer, "stack") if scope is None else scope
        outputs = inputs
        for i, each in enumerate(stack_args):
            arguments = each if isinstance(each, (list, tuple)) else [each]
            outputs = layer(outputs, *arguments, **kwargs, scope=f"{name}_{i + 1}")
        return outputs


def _scope_of(layer: Any, default: str) -> str:
    """The name of a layer's function, also of a partial one."""
    return getattr(layer, "__name__", None) or getattr(getattr(layer, "func", None), "__name__", default)


@export(v1=both("images_to_sequence"))
@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None
) -> Any:
    """[batch, height, width, channels] -> [width, batch * height, channels]: each row of pixels is a sequence."""
    checked_layout(data_format)
    with scopes.NameScope(scope, "ImagesToSequence", [inputs]) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        if data_format == "NCHW":
            inputs = shaping.transpose(inputs, [0, 2, 3, 1])
        _, _, width, channels = inputs.get_shape().as_list()
        sizes = shaping.shape(inputs)
        rows = shaping.reshape(shaping.transpose(inputs, [2, 0, 1, 3]), [sizes[2], sizes[0] * sizes[1], sizes[3]])
        known = inputs.get_shape()[0] * inputs.get_shape()[1]
        rows.set_shape([width, known, channels])
        return collect_named_outputs(outputs_collections, opened, rows)


@export(v1=both("sequence_to_images"))
@add_arg_scope
def sequence_to_images(
    inputs: Any,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """[width, batch * height, channels] -> [batch, height, width, channels]: the inverse of `images_to_sequence`."""
    with scopes.NameScope(scope, "SequenceToImages", [inputs]) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        width, count, channels = inputs.get_shape().as_list()
        split = shaping.reshape(
            inputs, [width or -1, -1 if width else shaping.shape(inputs)[1] // height, height, channels]
        )
        first = output_data_format in ("channels_first", "NCHW")
        outputs = shaping.transpose(split, [1, 3, 2, 0] if first else [1, 2, 0, 3])
        if count is not None:
            batch = count // height
            outputs.set_shape([batch, channels, height, width] if first else [batch, height, width, channels])
        return collect_named_outputs(outputs_collections, opened, outputs)


@export(v1=both("dense_to_sparse"))
@add_arg_scope
def dense_to_sparse(tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None) -> Any:
    """The elements of a tensor that are not `eos_token`, as a SparseTensor."""
    with variable_scope.variable_scope(scope, "dense_to_sparse", [tensor]) as opened:
        tensor = conversion.convert_to_tensor(tensor)
        places = selection.where(comparison.not_equal(tensor, constants.constant(eos_token, tensor.dtype)))
        outputs = sparse_tensor.SparseTensor(
            places, gathering.gather_nd(tensor, places), shaping.shape(tensor, out_type=dtypes.int64)
        )
        return collect_named_outputs(outputs_collections, opened.name, outputs)


@export(v1=both("legacy_fully_connected"))
def legacy_fully_connected(
    x: Any,
    num_output_units: int,
    activation_fn: Any = None,
    weight_init: Any = _XAVIER,
    bias_init: Any = _ZEROS,
    name: str | None = None,
    weight_collections: Any = (keys.GraphKeys.WEIGHTS,),
    bias_collections: Any = (keys.GraphKeys.BIASES,),
    output_collections: Any = (keys.GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Any:
    """A dense layer over the last dimension with the variables `weights` and `bias`, as in the first versions of TensorFlow."""
    with variable_scope.variable_scope(name, "fully_connected", [x]):
        x = conversion.convert_to_tensor(x)
        units = last_dimension(x.get_shape(), min_rank=2)
        dtype = x.dtype.base_dtype
        weights = variable_scope.get_variable(
            "weights",
            shape=[units, num_output_units],
            dtype=dtype,
            initializer=weight_init,
            collections=[*(weight_collections or ()), keys.GraphKeys.GLOBAL_VARIABLES],
            regularizer=weight_regularizer,
            trainable=trainable,
        )
        flat = x.get_shape().ndims <= 2
        outputs = matrix_products.matmul(x if flat else shaping.reshape(x, [-1, units]), weights)
        if bias_init is not None:
            bias = variable_scope.get_variable(
                "bias",
                shape=[num_output_units],
                dtype=dtype,
                initializer=bias_init,
                collections=[*(bias_collections or ()), keys.GraphKeys.GLOBAL_VARIABLES],
                regularizer=bias_regularizer,
                trainable=trainable,
            )
            outputs = nn_bias.bias_add(outputs, bias)
        if not flat:
            outputs = shaping.reshape(outputs, joining.concat([shaping.shape(x)[:-1], [num_output_units]], 0))
            outputs.set_shape([*x.get_shape()[:-1], num_output_units])
        if activation_fn:
            outputs = activation_fn(outputs)
        public.add_to_collections(output_collections or (), outputs)
        return outputs


legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)
legacy_relu = functools.partial(legacy_fully_connected, activation_fn=_RELU)
for _name in ("legacy_linear", "legacy_relu"):
    export_constant(__name__, _name, v1=both(_name))
