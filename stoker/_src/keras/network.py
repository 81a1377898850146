"""Networks: the layers between inputs and outputs, and their calls in order."""

from __future__ import annotations

from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import context, conversion, scopes
from stoker._src.graph.definition import find_definition
from stoker._src.graph.tensor import Tensor
from stoker._src.keras.base import (
    Layer,
    Node,
    floatx,
    graph_of_inputs,
    hooks,
    is_symbolic,
    layer_name,
    private_graph,
    takes,
)
from stoker._src.ops.array import constants
from stoker._src.ops.sparse import sparse_functions


@export("keras.layers.InputLayer")
class InputLayer(Layer):
    """Where a network begins: a placeholder, or a tensor of the program."""

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool = False,
        name: str | None = None,
        ragged: bool = False,
        **kwargs: Any,
    ) -> None:
        batch = kwargs.pop("batch_input_shape", None)
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments: {list(kwargs)}")
        if ragged:
            raise NotImplementedError("Ragged inputs of networks.")
        if dtype is None:
            dtype = floatx() if input_tensor is None else input_tensor.dtype.base_dtype
        super().__init__(name=name or layer_name("input"), dtype=dtype)
        if batch is None and input_shape is not None:
            batch = (batch_size, *TensorShape(input_shape).as_list())
        self.sparse, self.ragged, self.built, self.supports_masking = sparse, ragged, True, True
        self.is_placeholder = input_tensor is None
        if input_tensor is not None:
            tensor: Any = input_tensor
            batch = tuple(tensor.shape.as_list()) if tensor.shape.ndims is not None else None
        else:
            with context.enter_graph(private_graph()) if context.executing_eagerly() else scopes.NameScope(None):
                make = sparse_functions.sparse_placeholder if sparse else constants.placeholder
                tensor = make(as_dtype(dtype), batch if batch is None else list(batch), name=self.name)
        graph: Any = tensor.indices.op.graph if sparse else tensor.op.graph
        graph.keras_inputs = True
        self._batch_input_shape = None if batch is None else tuple(batch)
        Node(self, (), {}, tensor)

    def get_config(self) -> dict[str, Any]:
        return {
            "batch_input_shape": self._batch_input_shape,
            "dtype": self.dtype,
            "sparse": self.sparse,
            "ragged": self.ragged,
            "name": self.name,
        }


@export("keras.Input", "keras.layers.Input")
def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    ragged: bool = False,
    **kwargs: Any,
) -> Any:
    """An input of a network.

    Args:
        shape: the shape of one example.
        batch_size: the number of examples, if it is fixed.
        name: the name of the input layer.
        dtype: the dtype; float32 by default.
        sparse: whether it is a sparse tensor.
        tensor: a tensor of the program, in place of a placeholder.
        ragged: whether it is a ragged tensor.
        **kwargs: `batch_shape`: the shape with the batch.

    Raises:
        ValueError: neither a shape nor a tensor is given.
    """
    batch = kwargs.pop("batch_shape", None) or kwargs.pop("batch_input_shape", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments: {list(kwargs)}")
    if batch is None and shape is None and tensor is None:
        raise ValueError(
            "Please provide to Input either a `shape` or a `tensor` argument. Note that `shape` does not include the batch dimension."
        )
    more = {} if batch is None else {"batch_input_shape": tuple(batch)}
    layer = InputLayer(shape, batch_size, dtype, tensor, sparse, name, ragged, **more)
    return layer._inbound_nodes[0].outputs


class TensorFlowOpLayer(Layer):
    """An op of the program between layers of a network.

    Args:
        op: the op whose effect the layer has.
        fixed: its inputs that come from outside the network, by position.
        name: the layer's name.
    """

    def __init__(self, op: Any, fixed: dict[int, Any], name: str) -> None:
        super().__init__(name=name, trainable=False)
        self._op, self._fixed, self.built = op, fixed, True

    def call(self, inputs: Any) -> Any:
        given = iter(inputs if isinstance(inputs, (list, tuple)) else [inputs])
        flat = [_again(self._fixed[i]) if i in self._fixed else next(given) for i in range(len(self._op._inputs))]
        return _repeated(self._op, flat)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(
            f"The network uses the op {self._op.name} ({self._op.type}) outside of layers: configurations of such networks. Put it into a Lambda layer."
        )


def _repeated(op: Any, inputs: list[Any]) -> Any:
    """The op once more, on other inputs."""
    definition: Any = find_definition(op.type)
    attrs = {
        name: value for name, value in op.attrs.items() if name in definition.attrs and name not in definition.inferred
    }
    return definition(*definition.group(inputs, op.attrs), **attrs)


def _again(tensor: Any) -> Any:
    """A tensor from outside the network where it is needed now: in its own graph itself, elsewhere its value."""
    graph = tensor.op.graph
    if context.target() is graph:
        return tensor
    if graph is not private_graph():
        return tensor  # captured
    values = graph.captured_values
    if id(tensor) in values:
        return values[id(tensor)]
    made = _repeated(tensor.op, [_again(each) for each in tensor.op._inputs])
    return nest.flatten(made)[tensor.value_index] if len(tensor.op.outputs) > 1 else made


def _from_network(tensor: Any, known: dict[int, bool]) -> bool:
    """Whether a tensor depends on a Keras tensor."""
    waiting = [tensor]
    while waiting:
        each = waiting[-1]
        if id(each) in known:
            waiting.pop()
        elif hasattr(each, "_keras_history"):
            known[id(waiting.pop())] = True
        else:
            missing = [source for source in each.op._inputs if id(source) not in known]
            if missing:
                waiting.extend(missing)
            else:
                known[id(waiting.pop())] = any(known[id(source)] for source in each.op._inputs)
    return known[id(tensor)]


def wrap_plain_ops(values: Any) -> None:
    """Makes layers of the ops between Keras tensors and these tensors."""
    known: dict[int, bool] = {}
    for tensor in nest.flatten(values):
        if is_symbolic(tensor) and not hasattr(tensor, "_keras_history") and _from_network(tensor, known):
            _wrap(tensor, known)


def _wrap(tensor: Any, known: dict[int, bool]) -> None:
    waiting = [tensor]
    while waiting:
        op = waiting[-1].op
        if hasattr(op.outputs[0], "_keras_history"):
            waiting.pop()
            continue
        inner = [each for each in op._inputs if _from_network(each, known)]
        missing = [each for each in inner if not hasattr(each, "_keras_history")]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        fixed = {i: each for i, each in enumerate(op._inputs) if not _from_network(each, known)}
        layer = TensorFlowOpLayer(op, fixed, f"tf_op_layer_{op.name}")
        outputs = op.outputs[0] if len(op.outputs) == 1 else list(op.outputs)
        Node(layer, (inner[0] if len(inner) == 1 else inner,), {}, outputs)


hooks.wrap_plain_ops = wrap_plain_ops


class Network:
    """The nodes between inputs and outputs, in an order in which they can run. `losses` are tensors that are computed with the outputs.

    Raises:
        ValueError: an input is not the beginning of a network, or an output does not come from the inputs alone.
    """

    def __init__(self, inputs: Any, outputs: Any, losses: Any = ()) -> None:
        wrap_plain_ops((outputs, list(losses)))
        self.losses = list(losses)
        self.inputs, self.outputs = inputs, outputs
        self.flat_inputs, self.flat_outputs = nest.flatten(inputs), nest.flatten(outputs)
        for tensor in self.flat_inputs:
            if not hasattr(tensor, "_keras_history"):
                raise ValueError(
                    f"Input tensors to a Model must come from `tf.keras.Input`. Received: {tensor} (missing previous layer metadata)."
                )
        for tensor in self.flat_outputs:
            if not hasattr(tensor, "_keras_history"):
                raise ValueError(
                    f"Output tensors to a Model must be the output of a TensorFlow `Layer` (thus holding past layer metadata). Found: {tensor}"
                )
        self._ends = {id(tensor) for tensor in self.flat_inputs}
        self.nodes = self._ordered()
        self.input_layers = [tensor._keras_node.layer for tensor in self.flat_inputs]
        self.layers = self._by_depth()
        names = [layer.name for layer in self.layers]
        for each in names:
            if names.count(each) > 1:
                raise ValueError(
                    f'The name "{each}" is used {names.count(each)} times in the model. All layer names should be unique.'
                )

    def _ordered(self) -> list[Node]:
        """The nodes, each after those it depends on."""
        done: dict[int, Node] = {}
        self._entered: dict[int, int] = {}  # by layer: when the search for nodes met it first
        for output in [*self.flat_outputs, *self.losses]:
            waiting: list[tuple[Node, bool]] = [(output._keras_node, False)]
            while waiting:
                node, ready = waiting.pop()
                if id(node) in done:
                    continue
                self._entered.setdefault(id(node.layer), len(self._entered))
                sources = [] if self._begins(node) else node.inputs
                if ready or not sources:
                    if not sources and not self._begins(node) and isinstance(node.layer, InputLayer):
                        raise ValueError(
                            f'Graph disconnected: cannot obtain value for tensor {node.outputs} at layer "{node.layer.name}".'
                        )
                    done[id(node)] = node
                    continue
                waiting.append((node, True))
                waiting.extend((each._keras_node, False) for each in reversed(sources))
        for tensor in self.flat_inputs:
            done.setdefault(id(tensor._keras_node), tensor._keras_node)
            self._entered.setdefault(id(tensor._keras_node.layer), len(self._entered))
        return list(done.values())

    def _begins(self, node: Node) -> bool:
        return any(id(tensor) in self._ends for tensor in nest.flatten(node.outputs))

    def _by_depth(self) -> list[Any]:
        """The layers: those farthest from the outputs first, in each depth in the order in which the search met them."""
        depth: dict[int, int] = {}
        of_layer: dict[int, int] = {}
        layers: dict[int, Any] = {}
        for node in reversed(self.nodes):
            mine = max(depth.get(id(node), 0), of_layer.get(id(node.layer), 0))
            depth[id(node)] = of_layer[id(node.layer)] = mine
            layers[id(node.layer)] = node.layer
            if self._begins(node):
                continue
            for source in node.inputs:
                key = id(source._keras_node)
                depth[key] = max(depth.get(key, 0), mine + 1)
        return sorted(layers.values(), key=lambda each: (-of_layer[id(each)], self._entered[id(each)]))

    def run(self, inputs: Any, training: Any = None, mask: Any = None) -> tuple[Any, list[Any]]:
        """The outputs and losses for other inputs: each layer is called once more."""
        values = {id(key): value for key, value in zip(self.flat_inputs, self._matched(inputs))}
        if mask is not None:
            for tensor, each in zip(self.flat_inputs, nest.flatten(mask)):
                if each is not None:
                    values[id(tensor)]._keras_mask = each
        for node in self.nodes:
            if self._begins(node):
                continue
            arguments, kwargs = nest.map_structure(
                lambda each: values.get(id(each), each) if isinstance(each, Tensor) else each,
                (node.arguments, node.kwargs),
            )
            if training is not None and takes(node.layer.call, "training") and kwargs.get("training") is None:
                kwargs = {**kwargs, "training": training}
            outputs = node.layer(*arguments, **kwargs)
            for key, value in zip(nest.flatten(node.outputs), nest.flatten(outputs)):
                values[id(key)] = value
        outputs = nest.pack_sequence_as(self.outputs, [values[id(each)] for each in self.flat_outputs])
        return outputs, [values[id(each)] for each in self.losses]

    def _matched(self, inputs: Any) -> list[Any]:
        """The inputs in the order of the network's, which a dictionary names."""
        if isinstance(inputs, dict) and not isinstance(self.inputs, dict):
            missing = [layer.name for layer in self.input_layers if layer.name not in inputs]
            if missing:
                raise ValueError(
                    f"No data provided for {missing[0]!r}. Need data for each key in: {[layer.name for layer in self.input_layers]}"
                )
            flat = [inputs[layer.name] for layer in self.input_layers]
        else:
            flat = nest.flatten(inputs)
        if len(flat) != len(self.flat_inputs):
            raise ValueError(f"The network has {len(self.flat_inputs)} inputs, but {len(flat)} were given.")
        with graph_of_inputs(flat):
            return [conversion.convert_to_tensor(each) if not hasattr(each, "static_shape") else each for each in flat]
