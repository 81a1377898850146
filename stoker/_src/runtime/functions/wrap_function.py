"""`tf.compat.v1.wrap_function`: makes a 1.x-style function callable from eager programs, as a whole or in parts by name."""

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
    """The result of `wrap_function`. As in a 1.x graph, only the ops that the results need are run."""

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
        self._made = made  # keeps the variables that the function created alive

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with tensors by position.

        Raises:
            NotImplementedError: arguments are passed by name.
            TypeError, ValueError: the tensors do not fit the signature.
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
        """Returns a function for a part of the graph, from `feeds` to `fetches`.

        Args:
            feeds: tensors of `self.graph` (or their names) that become the arguments.
            fetches: a structure of its tensors and operations (or their names). Operations are run and return None.
            name: the name of the returned function.
            input_signature: TensorSpecs of the arguments, for `structured_input_signature`.

        Raises:
            KeyError, ValueError: a feed or fetch is not in the graph.
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
    """Traces `fn` once, as 1.x code, in a separate graph. Its variables are created once and belong to the result.

    Args:
        fn: the function.
        signature: the arguments. TensorSpecs become tensors; other values are passed unchanged.
        name: the name of the function.
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
        if not isinstance(graph.outer, Graph):  # outside of graphs, variables are not added to collections
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
