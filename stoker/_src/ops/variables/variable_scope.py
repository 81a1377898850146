"""`get_variable` and `variable_scope`: variables by name, with optional sharing."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from stoker._src.base import dtypes, settings
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import colocate_with, graph_of, init_scope, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import slicing
from stoker._src.ops.variables import creators, initializers, variables
from stoker._src.ops.variables.partitioned import PartitionedVariable, PartitionInfo, SaveSliceInfo, partition_offsets


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE
export_constant(__name__, "AUTO_REUSE", v1="AUTO_REUSE")

Reuse = bool | None | _ReuseMode


class VariableStore:
    """The variables of one graph by name, and how often each default scope name was used.

    In eager mode variables are kept only `if eager`, and then shared without being asked to.
    """

    def __init__(self, eager: bool = False) -> None:
        self.eager = eager
        self.variables: dict[str, Any] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}
        self.scope_counts: dict[str, int] = {}
        self.current = VariableScope(False, name="")

    def open_scope(self, name: str) -> None:
        self.scope_counts[name] = self.scope_counts.get(name, 0) + 1

    def close_scopes_below(self, name: str) -> None:
        prefix = name + "/"
        for known in self.scope_counts:
            if not name or known.startswith(prefix):
                self.scope_counts[known] = 0

    def unique_scope(self, prefix: str) -> str:
        """`prefix` with a suffix that makes it unique within the current scope."""
        name = f"{self.current.name}/{prefix}" if self.current.name else prefix
        if not self.scope_counts.get(name):
            return prefix
        index = 1
        while self.scope_counts.get(f"{name}_{index}"):
            index += 1
        return f"{prefix}_{index}"


def variable_store() -> VariableStore:
    """The variables that `get_variable` created in the current graph."""
    graph = program_graph()
    store = getattr(graph, "variable_store", None)
    if store is None:
        store = graph.variable_store = VariableStore()
    return store


@contextmanager
def variable_store_as(store: VariableStore) -> Iterator[None]:
    """Makes `store` the current graph's in a block."""
    before = variable_store()
    program_graph().variable_store = store
    try:
        yield
    finally:
        program_graph().variable_store = before


def program_graph() -> Any:
    """The graph that owns new variables. Bodies of functions and loops share the graph around them."""
    graph = context.get_default_graph()
    while graph.building_function and hasattr(graph.outer, "get_operations"):
        graph = graph.outer
    return graph


@export(v1="VariableScope")
class VariableScope:
    """Defaults for `get_variable`: name prefix, reuse, initializer, regularizer, partitioner and so on."""

    def __init__(
        self,
        reuse: Reuse,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._reuse = reuse
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = as_dtype(dtype)
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        return self._name

    @property
    def original_name_scope(self) -> str:
        return self._name_scope

    @property
    def reuse(self) -> Reuse:
        return self._reuse

    @property
    def initializer(self) -> Any:
        return self._initializer

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        return self._use_resource

    @property
    def regularizer(self) -> Any:
        return self._regularizer

    @property
    def caching_device(self) -> Any:
        return self._caching_device

    @property
    def partitioner(self) -> Any:
        return self._partitioner

    @property
    def custom_getter(self) -> Any:
        return self._custom_getter

    @property
    def constraint(self) -> Any:
        return self._constraint

    def reuse_variables(self) -> None:
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self._initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        self._dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool | None) -> None:
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        self._custom_getter = custom_getter

    def get_collection(self, name: str) -> list[Any]:
        scope = self._name + "/" if self._name else self._name
        return context.get_default_graph().get_collection(name, scope)

    def trainable_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def _copy(self, **changes: Any) -> VariableScope:
        parts = ("reuse name initializer regularizer caching_device partitioner custom_getter name_scope dtype "
                 "use_resource constraint").split()  # fmt: skip
        return VariableScope(**{**{part: getattr(self, f"_{part}") for part in parts}, **changes})

    def get_variable(
        self,
        var_store: VariableStore,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Reuse = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """`tf.get_variable` in this scope. Arguments that are not given come from the scope."""
        kwargs: dict[str, Any] = {
            "name": f"{self._name}/{name}" if self._name else name,
            "shape": shape,
            "dtype": self._dtype if dtype is None and initializer is None else dtype,
            "initializer": self._initializer if initializer is None else initializer,
            "regularizer": self._regularizer if regularizer is None else regularizer,
            "reuse": self._reuse if reuse is None else reuse,
            "trainable": synchronization != creators.VariableSynchronization.ON_READ
            if trainable is None
            else trainable,
            "collections": collections,
            "caching_device": self._caching_device if caching_device is None else caching_device,
            "partitioner": self._partitioner if partitioner is None else partitioner,
            "validate_shape": validate_shape,
            "use_resource": self._use_resource if use_resource is None else use_resource,
            "constraint": self._constraint if constraint is None else constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if kwargs["dtype"] is None and not _has_dtype(kwargs["initializer"]):
            kwargs["dtype"] = self._dtype
        getter: Callable[..., Any] = partial(_get, var_store)
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        custom = custom_getter or self._custom_getter
        with name_scope(None):
            if custom is None:
                return getter(**kwargs)
            return custom(getter, **kwargs)


def _has_dtype(initializer: Any) -> bool:
    return initializer is not None and not callable(initializer)


def _get(
    store: VariableStore,
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Reuse = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """Finds or creates the variable with that full name, as `reuse` says.

    Custom getters call this, also with positional arguments, which therefore have TensorFlow's order.
    """
    kwargs: dict[str, Any] = {
        "shape": shape, "dtype": dtype, "initializer": initializer, "regularizer": regularizer, "reuse": reuse,
        "trainable": trainable, "collections": collections, "caching_device": caching_device, "validate_shape": validate_shape,
        "use_resource": use_resource, "constraint": constraint, "synchronization": synchronization, "aggregation": aggregation,
    }  # fmt: skip
    if partitioner is not None:
        if not callable(partitioner):
            raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
        if context.executing_eagerly():
            raise ValueError("Partitioned variables are not yet supported when eager execution is enabled.")
        if shape is None or as_shape(shape).rank != 0:  # a scalar cannot be partitioned
            return _get_partitioned(store, name, partitioner, **kwargs)
    if name in store.partitioned:
        raise ValueError(
            f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. Perhaps a variable of the same name was already created with partitioning?"
        )
    return _get_single(store, name, **kwargs)


def _get_single(
    store: VariableStore,
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Reuse = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
    partition_info: PartitionInfo | None = None,
) -> Any:
    wanted = None if shape is None else as_shape(shape)
    eager = context.executing_eagerly()
    kept = store.eager or not eager
    found = store.variables.get(name) if kept else None
    if found is not None:
        _check_shared(found, name, wanted, dtype, reuse or eager)
        return found
    if reuse is True and not eager:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
        )
    if constraint is not None and not callable(constraint):
        raise ValueError("The `constraint` argument must be a callable.")
    made_dtype = dtypes.float32 if dtype is None else as_dtype(dtype).base_dtype
    value = _initial_value(name, initializer, wanted, made_dtype, dtype, validate_shape, partition_info)
    kwargs = {
        "initial_value": value, "name": name, "trainable": trainable, "collections": collections, "caching_device": caching_device,
        "dtype": made_dtype if callable(value) or dtype is not None else None, "validate_shape": validate_shape, "constraint": constraint,
        "synchronization": synchronization, "aggregation": aggregation,
        "use_resource": settings.use_resource_variables if use_resource is None else use_resource,
    }  # fmt: skip
    variable = variables.Variable(**kwargs)
    if kept:
        store.variables[name] = variable
    if regularizer is not None:
        _regularize(variable, name, regularizer)
    return variable


def _initial_value(
    name: str, initializer: Any, shape: Shape | None, dtype: Any, given: Any, validate_shape: bool, partition_info: Any
) -> Any:
    if initializer is None:
        if shape is None or not shape.known:
            raise ValueError(
                f"Shape of a new variable ({name}) must be fully defined, but instead was {TensorShape(shape)}."
            )
        initializer = _default_initializer(name, dtype)
    elif isinstance(initializer, type):
        initializer = initializer()
    if not callable(initializer) or isinstance(initializer, Tensor):
        if given is not None:
            own = convert_to_tensor(initializer).dtype.base_dtype
            if own is not dtype:
                raise ValueError(f"Initializer type '{own!r}' and explicit dtype '{dtype!r}' don't match.")
        if shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        return initializer
    if shape is None or not shape.known:
        if shape is None and not _takes_shape(initializer):
            return initializer  # a function without arguments
        if validate_shape or shape is None:
            raise ValueError(
                f"Shape of a new variable ({name}) must be fully defined, but instead was {'<unknown>' if shape is None else TensorShape(shape)}."
            )
    if not _takes_shape(initializer):
        return initializer
    sizes = list(shape)
    named = any(parameter.name == "partition_info" for parameter in _parameters(initializer))
    extra = {"partition_info": partition_info} if named else {}
    if _accepts(initializer, "dtype"):
        return lambda: initializer(sizes, dtype=dtype, **extra)
    return lambda: initializer(sizes, **extra)


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("shape", inspect.Parameter.POSITIONAL_OR_KEYWORD)]


def _takes_shape(initializer: Any) -> bool:
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return any(parameter.kind in kinds for parameter in _parameters(initializer))


def _accepts(function: Any, name: str) -> bool:
    return any(p.name == name or p.kind is inspect.Parameter.VAR_KEYWORD for p in _parameters(function))


def _default_initializer(name: str, dtype: Any) -> Any:
    if dtype.is_floating:
        return initializers.GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype is dtypes.string:
        return initializers.Zeros()
    raise ValueError(f"An initializer for variable {name} of {dtype} is required")


def _check_shared(found: Any, name: str, shape: Shape | None, dtype: Any, reuse: Reuse) -> None:
    if reuse is False or reuse is None:
        where = f"\n\n  made at {found.op.user_line}" if not context.executing_eagerly() else ""
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?{where}"
        )
    if shape is not None and not shape.compatible(found.static_shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {TensorShape(shape)} and found shape {found.shape}."
        )
    if dtype is not None and not as_dtype(dtype).is_compatible_with(found.dtype.base_dtype):
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {as_dtype(dtype).name} and found dtype {found.dtype.base_dtype.name}."
        )


def _beside(variable: Any) -> Any:
    return nullcontext() if context.executing_eagerly() else colocate_with(variable.op)


def _regularize(variable: Any, name: str, regularizer: Any) -> None:
    # A regularization loss of a variable created in a branch or loop belongs to the outer graph, like the variable.
    lifted = not context.executing_eagerly() and context.get_default_graph() is not program_graph()
    with init_scope() if lifted else nullcontext(), _beside(variable), name_scope(name + "/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None and not context.executing_eagerly():
        program_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _get_partitioned(
    store: VariableStore,
    name: str,
    partitioner: Any,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    reuse: Reuse = None,
    **kwargs: Any,
) -> Any:
    initial_is_tensor = initializer is not None and not callable(initializer)
    full = None if shape is None else as_shape(shape)
    if initial_is_tensor:
        own = isinstance(initializer, Tensor)  # an initial value's own dtype takes precedence over the requested one
        initializer = convert_to_tensor(initializer, None if own or dtype is None else as_dtype(dtype).base_dtype)
        dtype = initializer.dtype
        if full is None or not full.known:
            full = initializer.static_shape
        elif not full.compatible(initializer.static_shape):
            raise ValueError(f"Shapes {TensorShape(full)} and {initializer.shape} are not compatible")
    if name in store.partitioned:
        found = store.partitioned[name]
        _check_shared(found, name, full, dtype, reuse)
        wanted = _partitions(partitioner, found.get_shape(), found.dtype, name)
        if wanted != found._partitions:
            raise ValueError(
                f"Trying to reuse partitioned variable {name} with the partitions {wanted}: it has {found._partitions}."
            )
        return found
    if reuse is True:
        raise ValueError(
            f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
        )
    if full is None or not full.known:
        raise ValueError(
            f"Shape of a new partitioned variable ({name}) must be fully defined, but instead was {TensorShape(full)}."
        )
    made_dtype = dtypes.float32 if dtype is None else as_dtype(dtype).base_dtype
    sizes: list[int] = list(full)  # type: ignore[arg-type]
    partitions = _partitions(partitioner, TensorShape(full), made_dtype, name)
    if f"{name}/part_0" in store.variables:
        raise ValueError(f"Variable {name}/part_0 already exists: another partitioning of {name} was made.")
    slices = []
    for i, (offset, part) in enumerate(partition_offsets(sizes, partitions, name)):
        info = PartitionInfo(full_shape=sizes, var_offset=offset)
        part_name = f"{name}/part_{i}"
        value = _sliced(initializer, offset, part) if initial_is_tensor else initializer
        with name_scope(None):
            variable = _get_single(
                store,
                part_name,
                None if initial_is_tensor else part,
                made_dtype,
                value,
                reuse=reuse,
                partition_info=info,
                **kwargs,
            )
        variable._set_save_slice_info(SaveSliceInfo(name, sizes, offset, part))
        slices.append(variable)
    made = PartitionedVariable(name=name, shape=full, dtype=made_dtype, variable_list=slices, partitions=partitions)
    store.partitioned[name] = made
    return made


def _partitions(partitioner: Any, shape: TensorShape, dtype: Any, name: str) -> list[int]:
    """The number of partitions along each dimension."""
    partitions = partitioner(shape=shape, dtype=dtype)
    if not isinstance(partitions, (list, tuple)):
        raise ValueError(
            f"Partitioner must return a sequence, one number of parts for each dimension of {name}, but it returned {partitions!r}."
        )
    return list(partitions)


def _sliced(tensor: Any, offset: list[int], part: list[int]) -> Any:
    result = slicing.slice(tensor, offset, part)
    result.set_shape(part)
    return result


# -- the public functions ----------------------------------------------------------------------------------------


@export(v1="get_variable_scope")
def get_variable_scope() -> VariableScope:
    """The current variable scope."""
    return variable_store().current


variables.scope_use_resource = lambda: variable_store().current.use_resource


@export(v1="get_variable")
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = creators.VariableSynchronization.AUTO,
    aggregation: Any = creators.VariableAggregation.NONE,
) -> Any:
    """Returns the variable `name` of the current variable scope: a new one, or the existing one when reusing.

    Args:
        name: its name, relative to the scope.
        shape: its shape; not needed if the initializer is a value.
        dtype: its dtype (float32 by default).
        initializer: an initializer, a function of (shape, dtype), or a value; by default Glorot uniform for floating
            point numbers and zeros for integers.
        regularizer: a function of the variable. Its result is added to REGULARIZATION_LOSSES.
        trainable, collections, caching_device, validate_shape, use_resource, constraint, synchronization, aggregation: see
            `tf.Variable`.
        partitioner: a function of (shape, dtype) that returns the number of partitions along each dimension.
        custom_getter: a function called as `custom_getter(getter, name, ...)` instead of creating the variable.

    Raises:
        ValueError: it exists and reuse is off, does not exist and reuse is on, or has another shape or dtype.
    """
    return get_variable_scope().get_variable(
        variable_store(), name, shape, dtype, initializer, regularizer, None, trainable, collections, caching_device, partitioner,
        validate_shape, use_resource, custom_getter, constraint, synchronization, aggregation,
    )  # fmt: skip


@export(v1="get_local_variable")
def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """`get_variable` for a local variable that is not trainable."""
    kwargs["trainable"] = False
    kwargs["collections"] = [*(kwargs.get("collections") or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, **kwargs)


@export(v1="variable_scope")
class variable_scope:
    """A context that prefixes the names of `get_variable` variables and provides defaults for them.

    Args:
        name_or_scope: a name relative to the current scope, or a VariableScope to re-enter.
        default_name: the name if `name_or_scope` is None. It is made unique.
        values: tensors that determine the graph.
        initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource, constraint: defaults.
        reuse: True to reuse variables, `tf.AUTO_REUSE` to reuse or create them, None to inherit.
        auxiliary_name_scope: whether to open a name scope as well.

    Raises:
        TypeError, ValueError: the name is missing or malformed.
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Reuse = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if reuse not in (None, True, False, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}")
        self._name_or_scope, self._default_name, self._values = name_or_scope, default_name, values
        self._changes = {
            "initializer": initializer, "regularizer": regularizer, "caching_device": caching_device, "partitioner": partitioner,
            "dtype": dtype, "use_resource": use_resource, "constraint": constraint,
        }  # fmt: skip
        self._custom_getter, self._reuse, self._auxiliary = custom_getter, reuse, auxiliary_name_scope
        self._opened: list[Any] = []

    def __enter__(self) -> VariableScope:
        opened = self._open()
        self._opened.append(opened)
        return opened.__enter__()

    def __exit__(self, *exc: Any) -> Any:
        return self._opened.pop().__exit__(*exc)

    @contextmanager
    def _open(self) -> Iterator[VariableScope]:
        if self._values:
            graph = nullcontext() if context.executing_eagerly() else graph_of(self._values).as_default()
            with graph, self._entered() as scope:
                yield scope
            return
        with self._entered() as scope:
            yield scope

    @contextmanager
    def _entered(self) -> Iterator[VariableScope]:
        store = variable_store()
        outer, counts = store.current, None
        given = self._name_or_scope
        if isinstance(given, VariableScope):
            counts = dict(store.scope_counts)
            name, base = given.name, given
            aux = given.name.split("/")[-1]
            reuse = self._reuse or given.reuse
            original = given.original_name_scope
        else:
            part = given if given is not None else store.unique_scope(self._default_name or "")
            name, base, original = f"{outer.name}/{part}" if outer.name else part, outer, None
            # The name scope is made unique separately, so the two may get different numbers.
            aux = given if given is not None else self._default_name or ""
            # If an outer scope reuses variables, an inner scope cannot turn that off.
            reuse = self._reuse or outer.reuse
            if given is None and self._reuse:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
        changes = {key: value for key, value in self._changes.items() if value is not None}
        getter = _nested_getter(self._custom_getter, base.custom_getter)
        with self._names(aux) as scope_name:
            opened = base._copy(
                name=name,
                reuse=reuse,
                custom_getter=getter,
                name_scope=scope_name if original is None else original,
                **changes,
            )
            store.current = opened
            if not isinstance(given, VariableScope):
                store.open_scope(name)
            try:
                yield opened
            finally:
                store.current = outer
                if counts is None:
                    store.close_scopes_below(name)
                else:
                    store.scope_counts = counts

    def _names(self, part: str) -> Any:
        if not self._auxiliary:
            return nullcontext(
                context.get_default_graph().get_name_scope() + "/"
                if context.get_default_graph().get_name_scope()
                else ""
            )
        return name_scope(part) if part else nullcontext("")


def _nested_getter(inner: Any, outer: Any) -> Any:
    """Combines the getters of nested scopes: the inner one is called first and calls the outer one."""
    if inner is None or outer is None or inner is outer:
        return inner or outer
    return lambda getter, *args, **kwargs: inner(partial(outer, getter), *args, **kwargs)


@export(v1="variable_op_scope")
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **kwargs: Any
) -> variable_scope:
    """Deprecated form of `variable_scope`, with the values first."""
    return variable_scope(name_or_scope, default_name, values, **kwargs)


@export(v1="create_partitioned_variables")
def create_partitioned_variables(
    shape: Any,
    slicing: Any,
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Reuse = None,
) -> list[Any]:
    """Creates the slices of a partitioned variable, in order. Deprecated: use `get_variable` with a partitioner.

    Args:
        shape: the shape of the whole variable.
        slicing: the number of slices along each dimension. Only one dimension may be partitioned.
        initializer: a function of (shape, dtype), or the value of the whole variable.
        dtype: the dtype of the slices.
        trainable, collections: see `get_variable`.
        name: the variable's name ("PartitionedVariable", made unique, by default).
        reuse: whether to reuse existing slices.

    Raises:
        ValueError: `shape` and `slicing` differ in length, or more than one dimension is partitioned.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        made = _get_partitioned(
            variable_store(),
            scope.name,
            lambda **_: slicing,
            shape,
            dtype,
            initializer,
            scope.reuse,
            trainable=trainable,
            collections=collections,
        )
        return list(made)


@export(v1="no_regularizer")
def no_regularizer(_: Any) -> None:
    """A regularizer without effect, to disable one in an inner scope."""
    return
