"""`stoker.to_torch`: a graph as a torch.nn.Module."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.interop import control_flow, forms_array, forms_math, forms_nn, functions  # noqa: F401  (they register forms)
from stoker._src.interop.source_check import check_module_source, identifier
from stoker._src.interop.sources import Source, open_source
from stoker._src.interop.values import TENSOR, Value
from stoker._src.interop.writer import VARIABLE_OPS, Environment, Unsupported, Writer, writes
from stoker._src.ops.support.values import from_numpy

_counter = itertools.count()


class Scope(torch.nn.Module):
    """The variables of a name scope."""


class TorchModule(torch.nn.Module):
    """A graph as a torch module, created by `stoker.to_torch`.

    Attributes:
        code: the source of `forward`. Each line ends with the name of its node.
        variable_names: maps names in `state_dict()` to names of TensorFlow variables.
        input_names: the names of the input tensors of `forward`, in order.
        output_names: the names of its output tensors.
    """

    code: str = ""
    variable_names: dict[str, str]
    input_names: list[str]
    output_names: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.variable_names = {}
        self.input_names, self.output_names = [], []
        # Constants in the code are created on the module's device, even if the module has no variables.
        self.register_buffer("anchor", torch.zeros([0]), persistent=False)

    @property
    def device(self) -> torch.device:
        """The device that the module is on."""
        return self.anchor.device  # type: ignore[return-value]

    def extra_repr(self) -> str:
        return f"({', '.join(self.input_names)}) -> ({', '.join(self.output_names)})"


@export("to_torch")
def to_torch(
    source: Any,
    inputs: Any = None,
    outputs: Any = None,
    *,
    session: Any = None,
    checkpoint: Any = None,
    signature: str | None = None,
    tags: Any = None,
    updates: Any = True,
    train_constants: bool = False,
) -> TorchModule:
    """Turns a graph into a `torch.nn.Module` whose parameters are the variables.

    The module's `forward` takes the inputs in order and returns the outputs. Its source, one line per op, is `module.code`. The module can be trained
    with torch's autograd, moved between devices, and passed to `torch.export` and `torch.compile`. Trainable variables become parameters and
    others buffers. Their names have dots instead of slashes (`module.variable_names` maps them back).

    Random ops draw from torch's generator. Assertions, summaries and prints are omitted. Data layouts are unchanged: images stay
    [batch, height, width, channels] if the graph uses that layout.

    Args:
        source: a tf.Graph, a tf.Session, a GraphDef or MetaGraphDef, or a path: of a SavedModel's directory, a `.meta` file (with its checkpoint
            beside it), a checkpoint (with its `.meta` beside it), a frozen graph (`.pb` or `.pbtxt`).
        inputs: the tensors that `forward` takes, or their names: one, a list, or a dict from argument names to tensors. Any tensor of the
            graph can be one, as in a feed_dict. A boolean scalar, such as `is_training`, also takes Python's True and False.
        outputs: the results of `forward`: one tensor, a list (`forward` returns a tuple) or a dict (it returns a dict). An operation, such as an update
            of moving averages, is run and returns nothing.
        session: the session that holds the values of the variables. The default is the default session.
        checkpoint: a checkpoint to read the values from instead.
        signature: for a SavedModel or MetaGraphDef, the signature that names inputs and outputs if they are not given.
        tags: the tags of the SavedModel's meta graph. The default is "serve", or the only set of tags.
        updates: the operations to run while `module.training` is true: True for the members of the collection UPDATE_OPS that belong to the
            outputs (moving averages of batch normalization), a list of operations, or False for none.
        train_constants: whether the floating-point constants of a frozen graph become parameters, so that it can be fine-tuned.

    Raises:
        FailedPreconditionError: a variable has no value.
        NotImplementedError: ops have no torch form. The message names all of them.
        ValueError: an input or output is not in the graph, or a placeholder is missing from the inputs.
    """
    with open_source(source, session, checkpoint, tags) as opened:
        if inputs is None and outputs is None:
            chosen = opened.signature(signature)
            inputs, outputs = (_components(infos) for infos in (chosen.inputs, chosen.outputs))
        elif inputs is None or outputs is None:
            raise ValueError("Give both inputs and outputs, or a model with signatures and neither.")
        return _Builder(opened, train_constants).build(inputs, outputs, updates)


def _components(infos: Any) -> dict[str, str]:
    """Returns the names of a signature's tensors by key. A sparse or ragged tensor is represented by its parts, each with a key of its own."""
    names: dict[str, str] = {}
    for key in sorted(infos):
        info = infos[key]
        kind = info.WhichOneof("encoding")
        if kind == "coo_sparse":
            for part in ("indices", "values", "dense_shape"):
                names[f"{key}_{part}"] = getattr(info.coo_sparse, f"{part}_tensor_name")
        elif kind == "composite_tensor":
            for number, part in enumerate(info.composite_tensor.components):
                names[f"{key}_{number}" if number else key] = part.name
        else:
            names[key] = info.name
    return names


class _Builder:
    """Registers variables and constants on the module while its code is written."""

    def __init__(self, source: Source, train_constants: bool) -> None:
        self.source = source
        self.module = TorchModule()
        self._train_constants = train_constants
        self._is_frozen = not any(op.type in VARIABLE_OPS for op in source.graph.get_operations())
        self._codes: dict[Any, str] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._arrays: list[Any] = []  # keeps constants alive, because their ids are keys

    # -- what the writer asks for --------------------------------------------------------------------------------

    def variable(self, op: Operation) -> str:
        """The code of a variable."""
        if op not in self._codes:
            value = from_numpy(self.source.value(op)).clone()
            trainable = value.dtype.is_floating_point and self.source.is_trainable(op)
            item: Any = torch.nn.Parameter(value) if trainable else value
            path = self._registered(op.name.split("/"), item, persistent=True)
            self.module.variable_names[path] = op.name
            self._codes[op] = f"self.{path}"
            self._shapes[f"self.{path}"] = tuple(value.shape)
        return self._codes[op]

    def shape_of(self, code: str) -> tuple[int, ...]:
        return self._shapes[code]

    def constant(self, value: Value) -> str:
        """The code of a constant, which becomes a buffer."""
        key = id(value.array)
        if key not in self._codes:
            self._arrays.append(value.array)
            tensor = from_numpy(value.array).clone()
            weight = self._is_frozen and tensor.dtype.is_floating_point and tensor.dim() > 0
            item: Any = torch.nn.Parameter(tensor) if weight and self._train_constants else tensor
            parts = value.name.split("/") if weight else ["constants", value.name.replace("/", "_")]
            path = self._registered(parts, item, persistent=weight)
            if weight:
                self.module.variable_names[path] = value.name
            self._codes[key] = f"self.{path}"
        return self._codes[key]

    def _registered(self, parts: list[str], item: Any, *, persistent: bool) -> str:
        """Adds a parameter or buffer under its scopes. Returns its path."""
        owner: torch.nn.Module = self.module
        path = []
        for part in parts[:-1]:
            name = self._free(owner, part, Scope)
            if not hasattr(owner, name):
                owner.add_module(name, Scope())
            owner = getattr(owner, name)
            path.append(name)
        name = self._free(owner, parts[-1], None)
        if isinstance(item, torch.nn.Parameter):
            owner.register_parameter(name, item)
        else:
            owner.register_buffer(name, item, persistent=persistent)
        return ".".join([*path, name])

    def _free(self, owner: torch.nn.Module, wanted: str, kind: Any) -> str:
        """A name that `owner` does not use yet, or that names one of its scopes."""
        base = identifier(wanted)
        name, count = base, 1
        while hasattr(owner, name) and not (kind is not None and isinstance(getattr(owner, name), kind)):
            name, count = f"{base}_{count}", count + 1
        return name

    # -- building ------------------------------------------------------------------------------------------------

    def build(self, inputs: Any, outputs: Any, updates: Any) -> TorchModule:
        graph = self.source.graph
        given = _named(inputs)
        tensors = [_tensor(graph, item, "input") for _, item in given]
        wanted = [(key, _element(graph, item)) for key, item in _named(outputs)]
        writer = Writer(self)
        env: Environment = {}
        arguments = []
        for (key, _), tensor in zip(given, tensors):
            name = writer.unique(key or tensor.op.name)
            arguments.append(name)
            env[tensor] = Value(TENSOR, tensor.dtype, name, name=name)
        targets = [item for _, item in wanted if isinstance(item, Operation)]
        fetches = [item for _, item in wanted if isinstance(item, Tensor)]
        trained = self._updates(updates, fetches, targets, set(tensors))
        reachable = writer.ordered(fetches, [*targets, *trained], set(tensors))
        writer.writes_variables = any(writes(op) for op in reachable)
        writer.line(f"def forward({', '.join(['self', *arguments])}):")
        writer.lines[0] = writer.lines[0].lstrip()
        for tensor in tensors:
            # A branch accepts Python's True and False. Other ops need a tensor.
            if tensor.dtype is dtypes.bool_ and tensor.static_shape.rank == 0 and not _only_decides(tensor):
                name = writer.unique(f"{env[tensor].name}_tensor")
                writer.line(f"{name} = ops.tensor({env[tensor].name}, torch.bool, self.device)", tensor.op.name)
                env[tensor].code = name
        writer.body(fetches, targets, env)
        if trained:
            writer.line("if self.training:")
            with writer.indented():
                writer.body([], trained, env)
        self._return(writer, outputs, wanted, env)
        _refuse(writer.problems)
        self.module.input_names = [tensor.name for tensor in tensors]
        self.module.output_names = [item.name for _, item in wanted]
        return _compiled(self.module, writer)

    def _return(self, writer: Writer, outputs: Any, wanted: list[Any], env: Environment) -> None:
        codes = {}
        for item in (item for _, item in wanted if isinstance(item, Tensor)):
            try:
                codes[item] = writer.tensor(env[item])
            except Unsupported as problem:
                writer.problems[item.op.name] = f"{item.op.type} {problem}"
        values = [(key, codes.get(item, "None")) for key, item in wanted]
        if isinstance(outputs, Mapping):
            keys = [writer.globally(f"key_{i}", str(key)) for i, (key, _) in enumerate(values)]
            writer.line("return {" + ", ".join(f"{name}: {code}" for name, (_, code) in zip(keys, values)) + "}")
        elif _is_many(outputs):
            writer.line("return (" + "".join(f"{code}, " for _, code in values) + ")")
        else:
            writer.line(f"return {values[0][1]}")

    def _updates(
        self, updates: Any, fetches: list[Tensor], targets: list[Operation], given: set[Tensor]
    ) -> list[Operation]:
        """The operations that run in training mode."""
        graph = self.source.graph
        if updates is False or updates is None:
            return []
        if updates is not True:
            found = [_element(graph, item) for item in (updates if _is_many(updates) else [updates])]
            return [item if isinstance(item, Operation) else item.op for item in found]
        computed = _ancestors([*(tensor.op for tensor in fetches), *targets], given)
        computed = {op for op in computed if op.type not in ("Const", *VARIABLE_OPS) and op._inputs}
        found = []
        for item in graph.get_collection(GraphKeys.UPDATE_OPS):
            op = item.op if isinstance(item, Tensor) else item
            if not isinstance(op, Operation) or op in targets:
                continue
            needs = _ancestors([op], given)
            # The values averaged by the update must be part of the model, and its inputs must be available.
            of_model = any(each in computed and not _is_read(each) for each in needs)
            if of_model and not any(each.type in ("Placeholder", "PlaceholderV2") for each in needs):
                found.append(op)
        return found


def _only_decides(tensor: Tensor) -> bool:
    return all(user.type in ("If", "StatelessIf") and user.inputs[0] is tensor for user in tensor.consumers())


def _is_read(op: Operation) -> bool:
    return op.type in ("Identity", "ReadVariableOp") and op._inputs[0].op.type in VARIABLE_OPS


def _ancestors(ops: Iterable[Operation], given: set[Tensor]) -> set[Operation]:
    found: set[Operation] = set()
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack.extend(tensor.op for tensor in op._inputs if tensor not in given)
    return found


def _is_many(items: Any) -> bool:
    return isinstance(items, (list, tuple))


def _named(items: Any) -> list[tuple[str, Any]]:
    if isinstance(items, Mapping):
        return [(str(key), item) for key, item in items.items()]
    return [("", item) for item in (items if _is_many(items) else [items])]


def _element(graph: Any, item: Any) -> Any:
    """A tensor or operation of the graph. The name of an op that has outputs refers to its first output."""
    if isinstance(item, str) and ":" not in item:
        op = graph.as_graph_element(item, allow_tensor=False)
        return op.outputs[0] if op.outputs else op
    found = graph.as_graph_element(item)
    if isinstance(found, Tensor) and found.graph is not graph:
        raise ValueError(f"{found.name} is a tensor of another graph.")
    return found


def _tensor(graph: Any, item: Any, what: str) -> Tensor:
    found = _element(graph, item)
    if not isinstance(found, Tensor):
        raise ValueError(f"The {what} {found.name} has no value: it is an operation without outputs.")
    return found


def _refuse(problems: dict[str, str]) -> None:
    missing = [node for node, why in problems.items() if "neither among the inputs" in why]
    if missing:
        raise ValueError(f"The outputs need the placeholders {', '.join(missing)}: name them among the inputs.")
    if problems:
        listed = "\n".join(f"  {node}: {why}" for node, why in list(problems.items())[:20])
        more = f"\n  and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise NotImplementedError(f"{len(problems)} nodes cannot be written as torch code:\n{listed}{more}")


def _compiled(module: TorchModule, writer: Writer) -> TorchModule:
    """Gives the module its own class, whose forward method is the code."""
    source = "\n".join(writer.lines) + "\n"
    known = {"torch": torch, "F": F, "ops": functions, **writer.globals}
    filename = f"<stoker module {next(_counter)}>"
    code = check_module_source(source, filename, set(known))
    namespace: dict[str, Any] = dict(known)
    exec(code, namespace)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)  # tracebacks show the lines
    forward: Callable[..., Any] = namespace["forward"]
    forward.__qualname__ = "TorchModule.forward"
    module.__class__ = type("TorchModule", (TorchModule,), {"forward": forward, "code": source})
    return module
