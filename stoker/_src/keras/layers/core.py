"""Dense, Dropout, Flatten, Embedding, and layers that reshape, mask or apply a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras import activations
from stoker._src.keras.base import Layer, takes
from stoker._src.keras.layers.arguments import resolved
from stoker._src.keras.learning_phase import resolved as training_flag
from stoker._src.keras.serialization import find, plain
from stoker._src.layers import core
from stoker._src.layers.base import InputSpec, dims, smart_cond
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.linalg import einsum
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.nn import embedding
from stoker._src.ops.random import uniform_normal


@export("keras.layers.Dense")
class Dense(core.Dense, Layer):
    """A dense layer: activation(inputs @ kernel + bias) over the last dimension."""

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**resolved(locals()))
        self.supports_masking = True


@export("keras.layers.Dropout")
class Dropout(core.Dropout, Layer):
    """In training, sets inputs to 0 with probability `rate` and divides the others by 1 - rate."""

    def __init__(self, rate: Any, noise_shape: Any = None, seed: Any = None, **kwargs: Any) -> None:
        super().__init__(rate, noise_shape, seed, **kwargs)
        self.supports_masking = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        return super().call(inputs, training_flag(training))


class _SpatialDropout(Dropout):
    """Drops whole feature maps."""

    rank: int

    def __init__(self, rate: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(rate, **kwargs)
        self.data_format = resolved({"data_format": data_format})["data_format"]
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _decisions(self, inputs: Any) -> Any:
        sizes = shaping.shape(inputs)
        ones = [1] * self.rank
        first = self.data_format == "channels_first"
        return [sizes[0], sizes[1], *ones] if first else [sizes[0], *ones, sizes[self.rank + 1]]


@export("keras.layers.SpatialDropout1D")
class SpatialDropout1D(_SpatialDropout):
    """Drops whole features of sequences."""

    rank = 1

    def __init__(self, rate: Any, **kwargs: Any) -> None:
        super().__init__(rate, "channels_last", **kwargs)


@export("keras.layers.SpatialDropout2D")
class SpatialDropout2D(_SpatialDropout):
    """Drops whole channels of images."""

    rank = 2


@export("keras.layers.SpatialDropout3D")
class SpatialDropout3D(_SpatialDropout):
    """Drops whole channels of volumes."""

    rank = 3


@export("keras.layers.GaussianNoise")
class GaussianNoise(Layer):
    """In training, adds normal noise with the standard deviation `stddev`."""

    def __init__(self, stddev: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.stddev = stddev

    def call(self, inputs: Any, training: Any = None) -> Any:
        def noised() -> Any:
            return inputs + uniform_normal.random_normal(
                shaping.shape(inputs), 0.0, self.stddev, inputs.dtype.base_dtype
            )

        return smart_cond(training_flag(training), noised, lambda: shaping.identity(inputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


@export("keras.layers.GaussianDropout")
class GaussianDropout(GaussianNoise):
    """In training, multiplies by normal noise around 1 with the standard deviation sqrt(rate / (1 - rate))."""

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(0.0, **kwargs)
        self.rate = rate

    def call(self, inputs: Any, training: Any = None) -> Any:
        if not 0 < self.rate < 1:
            return inputs

        def noised() -> Any:
            spread = np.sqrt(self.rate / (1.0 - self.rate))
            return inputs * uniform_normal.random_normal(shaping.shape(inputs), 1.0, spread, inputs.dtype.base_dtype)

        return smart_cond(training_flag(training), noised, lambda: shaping.identity(inputs))


@export("keras.layers.AlphaDropout")
class AlphaDropout(GaussianNoise):
    """Dropout that keeps the mean and variance of self-normalizing networks."""

    def __init__(self, rate: float, noise_shape: Any = None, seed: Any = None, **kwargs: Any) -> None:
        super().__init__(0.0, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = None) -> Any:
        if not 0 < self.rate < 1:
            return inputs

        def dropped() -> Any:
            low = -1.7580993408473766  # -alpha * scale of selu
            shape = shaping.shape(inputs) if self.noise_shape is None else self.noise_shape
            kept = casting.cast(
                uniform_normal.random_uniform(shape, seed=self.seed) >= self.rate, inputs.dtype.base_dtype
            )
            a = ((1 - self.rate) * (1 + self.rate * low**2)) ** -0.5
            return a * (inputs * kept + low * (1 - kept)) - a * low * self.rate

        return smart_cond(training_flag(training), dropped, lambda: shaping.identity(inputs))


@export("keras.layers.EinsumDense", "keras.layers.experimental.EinsumDense")
class EinsumDense(Layer):
    """A dense layer by an equation: activation(einsum(equation, inputs, kernel) + bias).

    Args:
        equation: such as "abc,cd->abd", or with "..." for any first dimensions.
        output_shape: the sizes of an output, None where they follow from the input.
        activation: a function or a name.
        bias_axes: the letters of the output dimensions that the bias has.
        kernel_initializer, ..., bias_constraint: of the weights.
        **kwargs: arguments of every layer.

    Raises:
        ValueError: on the first call, if a size follows neither from the input nor from `output_shape`.
    """

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.equation, self.bias_axes, self.activation = equation, bias_axes, given["activation"]
        self.partial_output_shape = list(output_shape) if isinstance(output_shape, (list, tuple)) else [output_shape]
        self.kernel_initializer, self.bias_initializer = given["kernel_initializer"], given["bias_initializer"]
        self.kernel_regularizer, self.bias_regularizer = given["kernel_regularizer"], given["bias_regularizer"]
        self.kernel_constraint, self.bias_constraint = given["kernel_constraint"], given["bias_constraint"]
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        terms, _, made = self.equation.replace(" ", "").partition("->")
        given, _, kernel = terms.partition(",")
        sizes = dims(input_shape)
        known: dict[str, Any] = {}
        if given.startswith("..."):
            known.update(zip(reversed(given[3:]), reversed(sizes)))
        else:
            known.update(zip(given.removesuffix("..."), sizes))
        # The first dimension of the output is the batch, unless dots stand for it.
        wanted = list(self.partial_output_shape)
        letters = made.removeprefix("...").removesuffix("...")
        places = zip(reversed(letters), reversed(wanted))
        known.update((letter, size) for letter, size in places if size is not None)
        missing = [each for each in kernel if known.get(each) is None]
        if missing:
            raise ValueError(
                f"The sizes of {missing} in the equation {self.equation!r} follow neither from the input of the shape "
                f"{tuple(sizes)} nor from output_shape={tuple(self.partial_output_shape)}."
            )
        self.kernel = self.add_weight(
            "kernel",
            [known[each] for each in kernel],
            None,
            self.kernel_initializer,
            self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.bias_axes:
            first = min(letters.index(each) for each in self.bias_axes)
            shape = [known[each] if each in self.bias_axes else 1 for each in letters[first:]]
            self.bias = self.add_weight(
                "bias", shape, None, self.bias_initializer, self.bias_regularizer, constraint=self.bias_constraint
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        outputs = einsum.einsum(self.equation, inputs, self.kernel)
        return self.activation(outputs if self.bias is None else outputs + self.bias)

    def get_config(self) -> dict[str, Any]:
        names = ("kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer")
        names = (*names, "activity_regularizer", "kernel_constraint", "bias_constraint")
        return {
            **self._common_config(),
            "output_shape": self.partial_output_shape,
            "equation": self.equation,
            "activation": activations.serialize(self.activation),
            "bias_axes": self.bias_axes,
            **{name: plain(getattr(self, name)) for name in names},
        }


@export("keras.layers.Identity")
class Identity(Layer):
    """The inputs themselves."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs: Any) -> Any:
        return nest.map_structure(shaping.identity, inputs)


@export("keras.layers.Flatten")
class Flatten(core.Flatten, Layer):
    """Flattens all dimensions except the first."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**resolved(locals()))


@export("keras.layers.Activation")
class Activation(Layer):
    """Applies an activation: a function or a name."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.activation = activations.get(activation)

    def call(self, inputs: Any) -> Any:
        return self.activation(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


@export("keras.layers.Reshape")
class Reshape(Layer):
    """Reshapes each example. One size may be -1."""

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        batch, *sizes = dims(input_shape)
        wanted = list(self.target_shape)
        if -1 in wanted:
            rest = -int(np.prod(wanted))
            at = wanted.index(-1)
            wanted[at] = None if None in sizes else int(np.prod(sizes)) // max(rest, 1)
        if None not in (*sizes, *wanted) and np.prod(sizes, dtype=int) != np.prod(wanted, dtype=int):
            raise ValueError("total size of new array must be unchanged")
        return TensorShape([batch, *wanted])

    def call(self, inputs: Any) -> Any:
        shape = self.compute_output_shape(inputs.shape)
        sizes = shape.as_list()[1:]
        # Where the sizes of an example are known, its shape needs no op.
        batch, sizes = (shaping.shape(inputs)[0], self.target_shape) if None in sizes else (-1, sizes)
        outputs = shaping.reshape(inputs, (batch, *sizes))
        outputs.set_shape(shape)
        return outputs


@export("keras.layers.Permute")
class Permute(Layer):
    """Permutes the dimensions of each example, counted from 1."""

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                f"Invalid permutation `dims` for Permute Layer: {dims}. The set of indices in `dims` must be consecutive and start from 1."
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Any) -> Any:
        return shaping.transpose(inputs, (0, *self.dims))


@export("keras.layers.RepeatVector")
class RepeatVector(Layer):
    """Repeats vectors n times: [batch, size] -> [batch, n, size]."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Any) -> Any:
        return joining.tile(shaping.expand_dims(inputs, 1), [1, self.n, 1])


@export("keras.layers.ActivityRegularization")
class ActivityRegularization(Layer):
    """Adds a penalty of its inputs to the loss."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=find("regularizers", "L1L2")(l1, l2), **kwargs)
        self.supports_masking = True
        self.l1, self.l2 = l1, l2

    def call(self, inputs: Any) -> Any:
        return shaping.identity(inputs)


@export("keras.layers.Masking")
class Masking(Layer):
    """Masks time steps all of whose features equal `mask_value`."""

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.mask_value = mask_value

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return reductions.reduce_any(comparison.not_equal(inputs, self.mask_value), axis=-1)

    def call(self, inputs: Any) -> Any:
        present = self.compute_mask(inputs)
        outputs = inputs * casting.cast(shaping.expand_dims(present, -1), inputs.dtype.base_dtype)
        outputs._keras_mask = present
        return outputs


@export("keras.layers.Lambda")
class Lambda(Layer):
    """Applies a function. Arguments named `mask` or `training` are passed on if the function has them."""

    def __init__(
        self, function: Any, output_shape: Any = None, mask: Any = None, arguments: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = mask is not None
        self.function, self.mask, self.arguments = function, mask, arguments or {}
        self._output_shape = output_shape

    def compute_output_shape(self, input_shape: Any) -> Any:
        wanted = self._output_shape
        if wanted is None:
            return super().compute_output_shape(input_shape)
        if callable(wanted):
            return nest.map_structure(TensorShape, wanted(input_shape))
        return TensorShape([dims(input_shape)[0], *wanted])

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        arguments = dict(self.arguments)
        if takes(self.function, "mask"):
            arguments["mask"] = mask
        if takes(self.function, "training"):
            arguments["training"] = training_flag(training)
        return self.function(inputs, **arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def get_config(self) -> dict[str, Any]:
        """The configuration, with the function by name.

        Raises:
            NotImplementedError: the function has no name. Files never hold code.
        """
        if getattr(self.function, "__name__", "<lambda>") == "<lambda>":
            raise NotImplementedError(
                f"The function of layer {self.name} has no name, and files hold no code: give Lambda a named function, and pass it as custom_objects when the model is loaded."
            )
        shape = self._output_shape
        return {
            **self._common_config(),
            "function": self.function.__name__,
            "function_type": "function",
            "module": self.function.__module__,
            "output_shape": getattr(shape, "__name__", None) if callable(shape) else plain(shape),
            "output_shape_type": "function" if callable(shape) else "raw",
            "arguments": self.arguments,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The layer of a configuration. Its function is one of the program's own.

        Raises:
            ValueError: the configuration holds code instead of a name, or a name that is unknown.
        """
        config = dict(config)
        kinds = config.pop("function_type", "function"), config.pop("output_shape_type", "raw")
        for key in ("module", "output_shape_module"):
            config.pop(key, None)
        if kinds[0] != "function":
            raise ValueError(f"The Lambda layer {config.get('name')!r} holds code. Code from files is never run.")
        config["function"] = find("activations", config["function"], custom_objects)
        if kinds[1] == "function" and config.get("output_shape"):
            config["output_shape"] = find("activations", config["output_shape"], custom_objects)
        return cls(**config)


@export("keras.layers.Embedding")
class Embedding(Layer):
    """Rows of a table by integer index: [...] -> [..., output_dim].

    Args:
        input_dim: the number of rows.
        output_dim: their length.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: of the table.
        activity_regularizer: a penalty of the outputs.
        mask_zero: whether the index 0 is padding that later layers skip.
        input_length: the length of the sequences.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: Any = None,
        **kwargs: Any,
    ) -> None:
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = (
                (input_length,) if not isinstance(input_length, (list, tuple)) else tuple(input_length)
            )
        given = resolved(locals())
        super().__init__(activity_regularizer=activity_regularizer, **{"dtype": "float32", **kwargs})
        self.input_dim, self.output_dim, self.mask_zero, self.input_length = (
            input_dim,
            output_dim,
            mask_zero,
            input_length,
        )
        self.embeddings_initializer = given["embeddings_initializer"]
        self.embeddings_regularizer = given["embeddings_regularizer"]
        self.embeddings_constraint = given["embeddings_constraint"]
        self.supports_masking = mask_zero
        self.embeddings: Any = None

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            "embeddings",
            (self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
        )
        self.built = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return comparison.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape([*dims(input_shape), self.output_dim])

    def call(self, inputs: Any) -> Any:
        if inputs.dtype.base_dtype.name not in ("int32", "int64"):
            inputs = casting.cast(inputs, dtypes.int32)
        return embedding.embedding_lookup(self.embeddings, inputs)
