"""`tf.compat.v1.wrap_function`: a function in the style of 1.x as one that eager programs call, and parts of it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.graph import Graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.variables import creators, variable_scope
from stoker._src.runtime.functions.concrete_function import ConcreteFunction


class WrappedFunction(ConcreteFunction):
    """What `wrap_function` returns. As in a 1.x graph, only what the results need runs."""

    def __init__(
        self,
        name: str,
        graph: FuncGraph,
        traced: branches_and_loops.Traced,
        arguments: list[Tensor],
        structure: Any,
        made: list[Any],
        controls: list[Operation],
    ) -> None:
        super().__init__(name, graph, traced, arguments, structure, controls)
        self._made = made  # the function owns the variables that it made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls with tensors by position.

        Raises:
            NotImplementedError: arguments by name.
            TypeError, ValueError: tensors that do not fit the signature.
        """
        if kwargs:
            raise NotImplementedError(
                f"Keyword arguments are not supported when calling a wrap_function-decorated function. Got {kwargs}."
            )
        values = nest.flatten(args, expand_composites=True)
        if len(values) != len(self._arguments):
            raise ValueError(f"Signature specifies {len(self._arguments)} arguments, got: {len(values)}.")
        return self.call_flat(values)

    def prune(self, feeds: Any, fetches: Any, name: str | None = None, input_signature: Any = None) -> WrappedFunction:
        """A function of a part of the graph: from `feeds` to `fetches`.

        Args:
            feeds: tensors of `self.graph` (or their names) that become the arguments.
            fetches: a structure of tensors and operations of it (or their names); operations run and give None.
            name: of the new function.
            input_signature: TensorSpecs of the arguments, for `structured_input_signature`.

        Raises:
            KeyError, ValueError: what is not in the graph.
        """
        graph: Any = self.graph
        arguments = [graph.as_graph_element(feed, True, False) for feed in nest.flatten(feeds, expand_composites=True)]
        elements = [graph.as_graph_element(fetch) for fetch in nest.flatten(fetches, expand_composites=True)]
        tensors = [None if isinstance(element, Operation) else element for element in elements]
        structure = nest.pack_sequence_as(fetches, tensors, expand_composites=True)
        signature = [TensorSpec.from_tensor(tensor) for tensor in arguments]
        return WrappedFunction(
            name or "pruned",
            graph,
            branches_and_loops.Traced(graph, structure, tensors),
            arguments,
            (tuple(signature) if input_signature is None else input_signature, {}),
            self._made,
            [element for element in elements if isinstance(element, Operation)],
        )


@export(v1="wrap_function")
def wrap_function(fn: Callable[..., Any], signature: Any, name: str | None = None) -> WrappedFunction:
    """Traces `fn` once, as code of 1.x: a graph of its own, whose variables are made once and belong to the result.

    Args:
        fn: the function.
        signature: its arguments: TensorSpecs become tensors, anything else is passed as it is.
        name: of the function.
    """
    graph = FuncGraph("wrapped_function")
    made: list[Any] = []
    arguments: list[Tensor] = []

    def argument(spec: Any) -> Any:
        if not isinstance(spec, TensorSpec):
            return spec
        arguments.append(graph.add_input(spec.dtype, spec.static_shape, spec.name))
        return arguments[-1]

    def creator(following: Any, **given: Any) -> Any:
        variable = following(**{**given, "use_resource": True})
        made.append(variable)
        if not isinstance(graph.outer, Graph):  # outside of graphs variables are in no collection
            for key in given.get("collections") or (GraphKeys.GLOBAL_VARIABLES,):
                graph.add_to_collection(key, variable)
            if variable.trainable:
                graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, variable)
        return variable

    controls: list[Operation] = []

    def body(*args: Any) -> Any:
        with (
            creators.variable_creator_scope(creator),
            variable_scope.variable_scope(variable_scope.get_variable_scope(), use_resource=True),
        ):
            result = fn(*args)
        controls.extend(leaf for leaf in nest.flatten(result) if isinstance(leaf, Operation))
        return nest.map_structure(lambda leaf: None if isinstance(leaf, Operation) else leaf, result)

    args = nest.map_structure(argument, list(signature))
    traced = branches_and_loops.trace(graph, body, args)
    return WrappedFunction(name or "wrapped_function", graph, traced, arguments, (tuple(signature), {}), made, controls)
