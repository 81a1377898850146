"""Eager mode: ops run when they are called, with the same kernels as in graphs, and tapes may record them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, settings
from stoker._src.base.devices import canonical_name
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape, TensorShape
from stoker._src.graph import placement_log
from stoker._src.graph.attr_values import public_value
from stoker._src.graph.definition import OpDefinition, Trait
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.source_lines import describe, user_frames
from stoker._src.graph.tapes import tapes
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.values import array_text, from_numpy, host_value, to_numpy
from stoker._src.ops.support.waiting import RunState
from stoker._src.runtime.devices import PREFIX
from stoker._src.runtime.failures import check_shapes, explain_failure
from stoker._src.runtime.functions.bodies import step_failure
from stoker._src.runtime.functions.calls import call_op
from stoker._src.runtime.locks import Holding
from stoker._src.runtime.plan import threads
from stoker._src.runtime.plan.emit import Step, copied
from stoker._src.runtime.plan.instructions import Value
from stoker._src.runtime.resources import NodeContext
from stoker._src.runtime.worker import Worker

_CPU = f"{PREFIX}CPU:0"
_MOST_TUNERS = 4096  # numbers of threads that are remembered, each for an op with an input of one shape


class EagerTensor(Tensor):
    """A tensor with a value. `numpy()` and `torch()` return it without a copy if the layout allows."""

    is_eager = True

    def __init__(self, value: Any, dtype: DType) -> None:
        self._value = value
        self.dtype = dtype
        self._id = None

    @property
    def op(self) -> Any:
        raise AttributeError("Tensor.op is undefined when eager execution is enabled.")

    @property
    def graph(self) -> Any:
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")

    @property
    def name(self) -> str:
        raise AttributeError("Tensor.name is undefined when eager execution is enabled.")

    @property
    def value_index(self) -> int:
        raise AttributeError("Tensor.value_index is undefined when eager execution is enabled.")

    def consumers(self) -> Any:
        raise NotImplementedError("Tensor.consumers is undefined when eager execution is enabled.")

    @property
    def device(self) -> str:
        on_host = not isinstance(self._value, torch.Tensor) or self._value.device.type == "cpu"
        return _CPU if on_host else f"{PREFIX}GPU:{self._value.device.index or 0}"

    backing_device = device

    @property
    def static_shape(self) -> Shape:
        return Shape(self._value.shape if self._is_array else ())

    _static_shape = static_shape  # type: ignore[assignment]

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.static_shape)

    @property
    def ndim(self) -> int:
        return len(self.static_shape)

    def set_shape(self, shape: Any) -> None:
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}")

    def numpy(self) -> Any:
        """Returns the value as an array (a NumPy scalar or bytes for a single element). Modifying the array does not change any tensor."""
        if not self._is_array:
            raise InvalidArgumentError(
                None, None, f"Cannot convert a Tensor of dtype {self.dtype.name} to a NumPy array."
            )
        array = to_numpy(copied(self._value)) if isinstance(self._value, torch.Tensor) else self._value
        return array if array.ndim else array[()]

    @property
    def _is_array(self) -> bool:
        """Whether it holds numbers or strings. Handles of variables, tables and lists hold an object instead."""
        return isinstance(self._value, (torch.Tensor, np.ndarray))

    def torch(self) -> torch.Tensor:
        """Returns the value as a torch tensor that shares memory with this one.

        Raises:
            TypeError: the tensor holds strings or a resource.
        """
        if not isinstance(self._value, torch.Tensor):
            raise TypeError(f"A tensor of dtype {self.dtype.name} has no torch form.")
        return self._value

    def static_array(self) -> Any:
        return np.asarray(to_numpy(self._value))

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what you're looking for?"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.torch().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self.torch().__dlpack_device__()

    def _single(self, action: str) -> Any:
        value = self.numpy()
        if getattr(value, "size", 1) != 1:
            raise TypeError(f"Only a tensor of one element can be {action}; this one has shape {self.shape}.")
        return value.item() if hasattr(value, "item") else value

    def __int__(self) -> int:
        return int(self._single("an int"))

    def __float__(self) -> float:
        return float(self._single("a float"))

    def __complex__(self) -> complex:
        return complex(self._single("a complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.ndim:
            raise TypeError("only integer scalar tensors can be converted to a scalar index")
        return int(self._single("an index"))

    def __bool__(self) -> bool:
        value = self.numpy()
        if not getattr(value, "size", 1):
            return False
        if getattr(value, "size", 1) != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous.")
        return bool(value)

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return self.static_shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        if tapes.active:  # a tape must record how the elements are computed from this tensor
            return (self[i] for i in range(len(self)))
        return (
            EagerTensor(
                self._value[i] if isinstance(self._value, torch.Tensor) else np.asarray(self._value[i], dtype=object),
                self.dtype,
            )
            for i in range(len(self))
        )

    def __hash__(self) -> int:
        if settings.tensor_equality:
            raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")
        return id(self)

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return EagerTensor(copied(self._value), self.dtype)

    def __reduce__(self) -> Any:
        return _rebuild, (self.numpy(), self.dtype)

    def __repr__(self) -> str:
        value = f"numpy={array_text(self.numpy())}" if self._is_array else f"value=<{type(self._value).__name__}>"
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, {value}>"

    def __str__(self) -> str:
        text = str(self.numpy()) if self._is_array else f"<{type(self._value).__name__}>"
        start = "\n" if "\n" in text else ""
        return f"tf.Tensor({start}{text}, shape={self.shape}, dtype={self.dtype.name})"


def _rebuild(array: Any, dtype: DType) -> EagerTensor:
    return EagerTensor(from_numpy(np.asarray(array)), dtype)


class EagerOperation:
    """A gradient function's view of an op that has run: its type, inputs, outputs and attributes."""

    __slots__ = ("attrs", "definition", "inputs", "known", "name", "outputs")

    def __init__(
        self,
        definition: OpDefinition,
        inputs: list[Any],
        attrs: dict[str, Any],
        outputs: list[Any],
        name: str,
        known: KnownCall | None = None,
    ) -> None:
        self.definition = definition
        self.inputs = inputs
        self.attrs = attrs
        self.outputs = outputs
        self.name = name
        self.known = known

    @property
    def type(self) -> str:
        return self.definition.name

    @property
    def _inputs(self) -> list[Any]:
        return self.inputs

    @property
    def user_line(self) -> str:
        return describe(user_frames())

    def attr(self, name: str) -> Any:
        return self.attrs[name]

    def get_attr(self, name: str) -> Any:
        return public_value(self.attrs[name])


def function_targets(record: EagerOperation) -> list[Any]:
    return [ref.target for ref in function_refs(record)]


class _Local(threading.local):
    scope = ""  # the name scope that is open, with a trailing slash
    updates: Updates | None = None  # what waits to run together


class _EagerScope:
    """An open name scope of eager mode. A class, because a generator takes several times as long to enter and leave."""

    __slots__ = ("_local", "_name", "_outer")

    def __init__(self, local: _Local, name: Any) -> None:
        self._local, self._name = local, name

    def __enter__(self) -> str:
        self._outer = outer = self._local.scope
        name = str(self._name) if self._name else ""
        self._local.scope = scope = name if not name or name.endswith("/") else f"{outer}{name}/"
        return scope

    def __exit__(self, *exc: object) -> None:
        self._local.scope = self._outer


class Updates:
    """Updates of variables that an optimizer asks for one by one. Those that share their numbers run as one call.

    They wait until the optimizer is done, or until another op uses a variable.
    """

    def __init__(self, local: _Local) -> None:
        self._local = local
        self._waiting: dict[Any, list[Any]] = {}
        self._variables: set[int] = set()

    def __enter__(self) -> None:
        self._local.updates = self

    def __exit__(self, *exc: object) -> None:
        self._local.updates = None
        self.run()

    def add(self, known: KnownCall, definition: OpDefinition, inputs: Sequence[Any], name: str | None) -> None:
        if id(inputs[0]) in self._variables:
            self.run()
        self._variables.add(id(inputs[0]))
        key = (known, *[id(inputs[i]) for i in known.on_host])
        self._waiting.setdefault(key, []).append((definition, inputs, name))

    def run(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        self._variables.clear()
        around, self._local.updates = self._local.updates, None  # what runs now does not wait again
        try:
            for (known, *_), calls in waiting.items():
                known.run_together(calls)
        finally:
            self._local.updates = around


class KnownCall:
    """An eager call whose attributes are checked. Calls with equal attributes and inputs of the same dtypes share it."""

    __slots__ = (
        "_batch",
        "_dtypes",
        "_executor",
        "_kernel",
        "_keywords",
        "_reads",
        "_touches",
        "attrs",
        "on_host",
    )

    def __init__(self, executor: EagerExecutor, definition: OpDefinition, attrs: dict[str, Any]) -> None:
        self.attrs = attrs
        self._executor = executor
        self._keywords = {key: attrs[key] for key in definition.kernel_attrs}
        self._kernel: Any = definition.kernel_fn
        self._dtypes = definition.output_dtypes(attrs)
        self.on_host = [i for i, arg in enumerate(definition.inputs) if arg.host]
        self._touches = any(arg.dtype is dtypes.resource for arg in definition.inputs)
        batch = definition.planning.batch
        fits = definition.plain and not definition.outputs and not definition.shape_rule.enforced
        self._batch = batch[1] if batch is not None and fits else None
        self._reads = bool(definition.traits & Trait.READS)

    def run(self, definition: OpDefinition, inputs: Sequence[Any], name: str | None) -> list[EagerTensor]:
        """Runs the op as `EagerExecutor.add` does. Returns its outputs."""
        values = [tensor._value for tensor in inputs]
        if definition.ranked:
            definition.check_ranks([getattr(value, "ndim", None) for value in values], self.attrs)
        if self._touches:
            updates = self._executor.local.updates
            if updates is not None:
                if self._batch is not None and not tapes.active and not placement_log.enabled:
                    updates.add(self, definition, inputs, name)
                    return []
                updates.run()
        arguments = values if definition.plain else definition.group(values, self.attrs)
        if definition.shape_rule.enforced:
            check_shapes(self._record(definition, inputs, [], name), arguments)
        if self.on_host:
            arguments = list(arguments)
            for i in self.on_host:
                arguments[i] = _on_host(arguments[i])
        tuner, key = self._executor.tuner(definition, values, [])
        began = tuner.begin()
        try:
            results = self._kernel(*arguments, **self._keywords)
        except Exception as error:
            raise explain_failure(error, self._record(definition, inputs, [], name), values) from error
        finally:
            tuner.end(began)
            if tuner.tiny:
                self._executor.forget_tuner(key)
        if definition.single:
            # Later writes to a variable must not change the value that was read.
            outputs = [EagerTensor(copied(results) if self._reads else results, self._dtypes[0])]
        else:
            flat = definition.flatten_results(results)
            outputs = [
                EagerTensor(copied(value) if self._reads else value, dtype) for value, dtype in zip(flat, self._dtypes)
            ]
        if placement_log.enabled:
            placement_log.executed(definition.name, outputs[0].device if outputs else _CPU)
        if tapes.active:
            record = self._record(definition, inputs, outputs, name)
            for tape in tapes.active:
                tape.record(record)
        return outputs

    def run_together(self, calls: list[Any]) -> None:
        """Runs several calls `(definition, inputs, name)` of an op that has no outputs. They share the inputs that the host needs."""
        definition, first, name = calls[0]
        if len(calls) == 1 or self._batch is None:
            for definition, inputs, name in calls:
                self.run(definition, inputs, name)
            return
        columns: list[Any] = [[inputs[i]._value for _, inputs, _ in calls] for i in range(len(first))]
        for i in self.on_host:
            columns[i] = host_value(columns[i][0])
        # The shapes of the first call stand for all: an optimizer has the same variables at every step.
        tuner, key = self._executor.tuner(definition, [tensor._value for tensor in first], [], len(calls))
        began = tuner.begin()
        try:
            self._batch(*columns, **self._keywords)
        except Exception as error:
            _, inputs, name = calls[getattr(error, "member", 0)]
            record = self._record(definition, inputs, [], name)
            raise explain_failure(error, record, [tensor._value for tensor in inputs]) from error
        finally:
            tuner.end(began)
            if tuner.tiny:
                self._executor.forget_tuner(key)

    def _record(
        self, definition: OpDefinition, inputs: Sequence[Any], outputs: list[Any], name: str | None
    ) -> EagerOperation:
        name = self._executor.op_name(name, definition.name)
        return EagerOperation(definition, list(inputs), dict(self.attrs), outputs, name, self)


def _on_host(argument: Any) -> Any:
    return [host_value(each) for each in argument] if isinstance(argument, list) else host_value(argument)


class EagerExecutor:
    """Executes ops in eager mode, on its own worker. It does not lock its variables."""

    building_function = False
    tensor_type = EagerTensor

    def __init__(self) -> None:
        self.worker = Worker(places_variables=False)
        self.seed: int | None = None
        self.local = _Local()
        self._states: dict[Any, NodeContext] = {}
        self._tuners: dict[Any, Any] = {}

    def op_name(self, name: str | None, op_type: str) -> str:
        return name.rstrip("/") if isinstance(name, str) and name else op_type

    def name_scope(self, name: str | None) -> _EagerScope:
        """Opens a name scope. Scopes affect the names of variables; eager ops have no names."""
        return _EagerScope(self.local, name)

    def get_name_scope(self) -> str:
        """Returns the scope that is open in this thread, without a trailing slash."""
        return self.local.scope.rstrip("/")

    def device(self, device: Any) -> Any:
        canonical_name(device)  # raises an error for an invalid device
        return nullcontext()

    def add_constant(self, array: Any, dtype: DType, name: str | None) -> EagerTensor:
        return EagerTensor(from_numpy(np.array(array) if dtype is not dtypes.string else array), dtype)

    def share(self, value: torch.Tensor, dtype: DType) -> EagerTensor:
        """Returns a tensor that shares the memory of a torch tensor."""
        return EagerTensor(value, dtype)

    def updates_together(self) -> Updates | nullcontext[None]:
        """A context in which updates of variables wait for each other, to run together."""
        return Updates(self.local) if self.local.updates is None else nullcontext()

    def capture_eager(self, tensor: EagerTensor) -> EagerTensor:
        return tensor

    def add(self, definition: OpDefinition, inputs: list[Any], attrs: dict[str, Any], name: str) -> EagerOperation:
        """Runs the op. Inputs must be converted and attributes complete."""
        if self.local.updates is not None:
            self.local.updates.run()
        record = EagerOperation(definition, inputs, attrs, [], name)
        if definition.planning.calls and any(tape.is_tracked(tensor) for tape in tapes.active for tensor in inputs):
            record.outputs = call_op(definition, inputs, attrs, name)
            return record
        values = [tensor._value for tensor in inputs]
        if definition.ranked:
            definition.check_ranks([getattr(value, "ndim", None) for value in values], attrs)
        arguments = values if definition.plain else definition.group(values, attrs)
        if definition.narrow:
            definition.check_narrow(attrs)
        if definition.shape_rule.enforced:
            check_shapes(record, arguments)
        for i, arg in enumerate(definition.inputs):
            if arg.host:
                arguments[i] = _on_host(arguments[i])
        keywords = {key: attrs[key] for key in definition.kernel_attrs}
        if definition.planning.keeps:
            self.worker.look_for_devices()
            keywords = self.worker.compiler.with_kept(record, keywords)
        if definition.needs_context:
            keywords["ctx"] = self._context(definition, attrs, name)
        steps: list[Step] = []
        holding = None
        if definition.planning.calls:
            keywords, steps = self._functions(record)
            holding = keywords["holding"] = Holding(
                self.worker.variables_lock, writes=False, state=RunState(), touches=False
            )
        tuner, key = self.tuner(definition, values, steps)
        began = tuner.begin()
        try:
            results = definition.kernel_fn(*arguments, **keywords)  # type: ignore[misc]
        except Exception as error:
            if holding is not None:
                holding.end()
            for step in steps:
                explained = step_failure(error, step)
                if explained._op is not None:  # type: ignore[attr-defined]
                    raise explained from error
            raise explain_failure(error, record, [tensor._value for tensor in inputs]) from error
        finally:
            tuner.end(began)
            if tuner.tiny:
                self.forget_tuner(key)
        flat = definition.flatten_results(results)
        outputs = [EagerTensor(value, dtype) for value, dtype in zip(flat, definition.output_dtypes(attrs))]
        if definition.traits & Trait.READS:
            # Later writes to the variable must not change the returned value.
            for tensor in outputs:
                tensor._value = copied(tensor._value)
        record.outputs = outputs
        if placement_log.enabled:
            placement_log.executed(definition.name, outputs[0].device if outputs else _CPU)
        if tapes.active:
            for tape in tapes.active:
                tape.record(record)
        return record

    def known_call(self, definition: OpDefinition, attrs: dict[str, Any]) -> KnownCall | None:
        """Returns how to repeat a call; None if each call is different: it calls functions, or has a state."""
        planning = definition.planning
        if planning.calls or planning.keeps or definition.needs_context or definition.by_reference:
            return None
        try:
            definition.check_narrow(attrs)
        except InvalidArgumentError:
            return None  # the call itself reports it, after other errors
        return KnownCall(self, definition, attrs)

    def forget_tuner(self, key: Any) -> None:
        """Ends the measurements of a short op."""
        self._tuners[key] = threads.small_runs

    def tuner(self, definition: OpDefinition, values: list[Any], steps: list[Step], calls: int = 1) -> tuple[Any, Any]:
        """Returns what chooses the number of threads, and its key: the function, or the op and its size."""
        first = values[0] if values else None
        key: Any = (definition, calls, first.shape if isinstance(first, torch.Tensor) else None)
        if steps:
            key = steps[0].filename
        elif definition.traits & Trait.BLOCKING:
            return threads.small_runs, key
        try:
            return self._tuners[key], key
        except KeyError:
            if len(self._tuners) >= _MOST_TUNERS:
                self._tuners.clear()
            made = self._tuners[key] = threads.tuner()
            return made, key

    def start_seed(self, seed: int) -> None:
        """Sets the seed for eager ops and for functions that are traced later, and restarts the random numbers."""
        self.seed = seed
        self._states.clear()
        self.worker.forget_states()

    def _functions(self, record: EagerOperation) -> tuple[dict[str, Any], list[Step]]:
        """Returns the compiled functions that an op calls. They are compiled once for the variables they are given."""
        passed = record.inputs[-len(record.attrs["T" if "T" in record.attrs else "Tin"]) :] if record.inputs else []
        known = {i: t._value for i, t in enumerate(passed) if t.dtype is dtypes.resource}
        first = function_refs(record)[0].target
        on_host = not any(_is_on_gpu(t._value) for t in passed)
        variables = tuple((i, id(value)) for i, value in known.items())
        key = (record.type, on_host, variables, *map(id, function_targets(record)))
        found = None if first is None else first.steps.get(key)
        if found is None:
            values = []
            for i in range(len(passed)):
                value = Value(f"in_{i}", -1, handle=i in known)
                value.is_constant, value.constant = i in known, known.get(i)
                values.append(value)
            count = len(record.definition.output_dtypes(record.attrs))
            self.worker.look_for_devices()
            compiled = self._compiled(record, values, [True] * count, on_host)
            assert first is not None  # compilation has already rejected an undefined function
            found = first.steps[key] = (compiled, known)
            if placement_log.enabled:
                placement = self.worker.placement
                for op in (op for step in compiled.steps for op in step.planner.ops):
                    placement_log.placed(op.name, op.type, placement.name(op))
        keywords, steps, _ = found[0]
        return dict(keywords), steps

    def _compiled(self, record: EagerOperation, values: list[Value], wanted: list[bool], on_host: bool) -> Any:
        """Compiles the functions of an op. Tensors and variables of eager mode are on the host unless the program says otherwise.

        A function that is given only such ones runs there as a whole. If its constants were on a GPU, every op would move data.
        """
        compiler, placement = self.worker.compiler, self.worker.placement
        if on_host and placement.gpu is not None:
            compiled = compiler.on_host()(record, values, wanted)  # type: ignore[arg-type]
            ops = [op for step in compiled.steps for each in step.with_functions() for op in each.planner.ops]
            requested = [placement.requested(op) for op in ops]
            if all(device is None or device.type == "cpu" for device in requested):
                return compiled
        return compiler(record, values, wanted)  # type: ignore[arg-type]

    def _context(self, definition: OpDefinition, attrs: dict[str, Any], name: str) -> NodeContext:
        """Returns the state of a stateful op. Calls with equal attributes share it, as in TensorFlow's kernel cache."""
        key = (definition.name, tuple(sorted((k, repr(v)) for k, v in attrs.items())))
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = NodeContext(name, self.worker.resources)
        return found


def _is_on_gpu(value: Any) -> bool:
    held = value if isinstance(value, torch.Tensor) else getattr(value, "value", None)
    return isinstance(held, torch.Tensor) and held.is_cuda


executor = EagerExecutor()
