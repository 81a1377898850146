"""`tf.Variable`: reference variables (1.x) and resource variables, in graphs and eager mode.

`Variable(...)` creates a `RefVariable` or a `ResourceVariable`, depending on `use_resource`, the variable scope and the
process-wide behaviour. Creator functions (`variable_creator_scope`) may intervene.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from stoker._src.base import settings
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.formats import protos
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, register_tensor_conversion_function
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import colocate_with, control_dependencies, device, init_scope, name_scope
from stoker._src.graph.tensor import Operation, Tensor, TensorReference
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.trackable import VARIABLE_VALUE_KEY, Trackable
from stoker._src.ops.array import shaping, slicing
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.support.values import array_text
from stoker._src.ops.variables import gather_ops, scatter_ops, state_ops
from stoker._src.ops.variables.creators import (
    V1_ARGUMENTS,
    V2_ARGUMENTS,
    VariableAggregation,
    VariableSynchronization,
    create,
)
from stoker._src.ops.variables.partitioned import SaveSliceInfo
from stoker._src.ops.variables.saveables import reference_saveable, resource_saveable
from stoker._src.ops.variables.state_ops import ANONYMOUS
from stoker._src.ops.variables.variable_updates import PartialUpdates, TensorOperators


class _VariableType(type):
    """Makes `Variable(...)` create the right class, through the active creator functions."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return create(_make, V1_ARGUMENTS, {}, dict(zip(V1_ARGUMENTS, args), **kwargs))
        if cls is VariableV2Form:
            return create(_make, V2_ARGUMENTS, {"use_resource": True}, dict(zip(V2_ARGUMENTS, args), **kwargs))
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (cls is VariableV2Form and isinstance(instance, Variable))


# Set by variable_scope: whether the current scope uses resource variables (None if it does not say).
scope_use_resource: Callable[[], bool | None] = lambda: None  # noqa: E731


def _make(**kwargs: Any) -> Any:
    use_resource = kwargs.pop("use_resource", None)
    kwargs.pop("experimental_enable_variable_lifting", None)
    if context.executing_eagerly():
        use_resource = True
    if use_resource is None:
        use_resource = scope_use_resource()
    if use_resource is None:
        use_resource = settings.use_resource_variables
    if not context.executing_eagerly() and context.target().building_function:
        return _lifted(use_resource, kwargs)
    return (ResourceVariable if use_resource else RefVariable)(**kwargs)


def _lifted(use_resource: bool, kwargs: dict[str, Any]) -> Any:
    """Creates a variable that was requested inside a function. It belongs to the graph (or eager mode) around the function.

    Raises:
        ValueError: its initial value is a tensor of the function, and the function is traced in a graph.
    """
    initial = kwargs.get("initial_value")
    if isinstance(initial, Tensor) and not getattr(initial, "is_eager", False) and initial.graph.building_function:
        if context.outermost_context() is None:
            return _initialized_by_function(kwargs)
        raise ValueError(
            "Tensor-typed variable initializers must either be wrapped in an init_scope or callable (e.g., "
            f"`tf.Variable(lambda : tf.truncated_normal([10, 40]))`) when building functions. Found {initial!r}."
        )
    with init_scope():
        return (ResourceVariable if use_resource or context.executing_eagerly() else RefVariable)(**kwargs)


class _Later:
    """Stands for an initial value that is assigned later: a tensor that a function computes, or the spec of the value."""

    def __init__(self, value: Tensor | TensorSpec) -> None:
        self.value = value


def uninitialized_variable(dtype: DType, shape: Any, **kwargs: Any) -> ResourceVariable:
    """An eager variable without a value. Reading it fails until one is assigned."""
    return ResourceVariable(_Later(TensorSpec(shape, dtype)), **kwargs)


def _initialized_by_function(kwargs: dict[str, Any]) -> ResourceVariable:
    """An eager variable whose initial value is a tensor of the function being traced. The function's first call assigns it."""
    dtype = kwargs.get("dtype")
    initial = convert_to_tensor(kwargs["initial_value"], None if dtype is None else as_dtype(dtype).base_dtype)
    with init_scope():
        variable = ResourceVariable(**{**kwargs, "initial_value": _Later(initial)})

    def assign() -> Any:
        with control_dependencies([variable.assign(initial, read_value=False)]):
            return convert_to_tensor(True)

    branches_and_loops.cond_v2(variable.is_initialized(), lambda: convert_to_tensor(True), assign)
    variable.initialized_by_function = True
    return variable


class Variable(PartialUpdates, TensorOperators, Trackable, metaclass=_VariableType):
    """A tensor that persists between runs and can be assigned.

    Args (1.x form):
        initial_value: a tensor, a value, or a function returning one (called with no control dependencies).
        trainable: whether optimizers update it by default (it is added to TRAINABLE_VARIABLES).
        collections: the graph collections to add it to; GLOBAL_VARIABLES by default.
        validate_shape: if False, assignments may change the shape.
        caching_device: where to cache reads.
        name: the variable's name, which is made unique.
        variable_def: a VariableDef to recreate the variable from, with `import_scope`.
        dtype: the dtype to convert the initial value to.
        expected_shape: deprecated and unused, as in TensorFlow.
        constraint: a function that optimizers apply to the value after updating it.
        use_resource: whether to create a resource variable.
        synchronization, aggregation: how copies on several devices behave.
        shape: the static shape, if it is less specific than that of the initial value.

    Raises:
        ValueError: there is no initial value, or it has no static shape although `validate_shape` is set.
    """

    is_tensor_like = True
    __array_priority__ = 100
    SaveSliceInfo = SaveSliceInfo

    _dtype: DType
    _static: Shape
    _name: str
    _element: Any  # the reference or handle
    _snapshot: Any  # the value that was read when the variable was created
    _initial_value: Any
    _initializer_op: Any

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name + ":0"

    @property
    def _shared_name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def static_shape(self) -> Shape:
        return self._static

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._static)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        return self._aggregation

    @property
    def constraint(self) -> Any:
        return self._constraint

    @property
    def initial_value(self) -> Any:
        if getattr(self._element, "is_eager", False):
            raise RuntimeError("This property is not supported when eager execution is enabled.")
        return self._initial_value

    @property
    def initializer(self) -> Any:
        return self._initializer_op

    @property
    def op(self) -> Operation:
        return self._element.op

    @property
    def device(self) -> str:
        return self._element.device

    @property
    def graph(self) -> Any:
        return self._element.graph

    def _as_graph_element(self) -> Tensor:
        return self._element

    def _control_element(self) -> Operation | None:
        return None if getattr(self._element, "is_eager", False) else self.op

    def _gradient_source(self) -> Tensor:
        """The tensor that `tf.gradients` differentiates with respect to."""
        return self._element

    @property
    def handle(self) -> Tensor:
        return self._element

    def ref(self) -> TensorReference:
        return TensorReference(self)

    experimental_ref = ref

    def _settle(self, kwargs: dict[str, Any]) -> None:
        """Stores the arguments that both kinds treat alike."""
        trainable = kwargs.get("trainable")
        synchronization = kwargs.get("synchronization") or VariableSynchronization.AUTO
        if trainable is None:
            trainable = synchronization != VariableSynchronization.ON_READ
        if not isinstance(synchronization, VariableSynchronization):
            raise ValueError(
                f"Invalid variable synchronization mode: {synchronization} for variable: {kwargs.get('name')}"
            )
        aggregation = kwargs.get("aggregation") or VariableAggregation.NONE
        if not isinstance(aggregation, VariableAggregation):
            raise ValueError(f"Invalid variable aggregation mode: {aggregation} for variable: {kwargs.get('name')}")
        constraint = kwargs.get("constraint")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self._trainable = bool(trainable)
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._constraint = constraint
        self._save_slice_info: Any = None

    def _join_collections(self, collections: Any) -> None:
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        if self._trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections = [*collections, GraphKeys.TRAINABLE_VARIABLES]
        context.get_default_graph().add_to_collections(collections, self)

    # -- reading -------------------------------------------------------------------------------------------------

    def value(self) -> Tensor:
        raise NotImplementedError

    def read_value(self) -> Tensor:
        raise NotImplementedError

    def _dense_var_to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
        if dtype is not None and dtype.base_dtype is not self._dtype.base_dtype:
            raise ValueError(
                f"Incompatible type conversion requested to type '{dtype.name}' for variable of type '{self._dtype.name}' ({self.name})"
            )
        return self._element if as_ref else self.value()

    def initialized_value(self) -> Tensor:
        """The value if it is initialized, else the initial value. Use it to initialize one variable from another."""
        with control_dependencies(None):
            return branches_and_loops.cond(self.is_initialized(), self.read_value, lambda: self._initial_value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        raise NotImplementedError

    def eval(self, session: Any = None) -> Any:
        """The value in `session`, or in the default session."""
        self._need_graph()
        return self._snapshot.eval(session=session)

    def _need_graph(self) -> None:
        if getattr(self._element, "is_eager", False):
            raise RuntimeError("This operation is not supported when eager execution is enabled.")

    def load(self, value: Any, session: Any = None) -> None:
        """Assigns a value from outside the graph, without adding nodes."""
        if getattr(self._element, "is_eager", False):
            self.assign(value)
            return
        if session is None:
            session = self.graph.default_session()
            if session is None:
                raise ValueError("Either session argument should be provided or default session should be established")
        initializer = self._initializer_op
        session.run(initializer, {initializer.inputs[1]: value})

    def numpy(self) -> Any:
        """The value as an array (eager mode).

        Raises:
            NotImplementedError: in graph mode.
        """
        if not getattr(self._element, "is_eager", False):
            raise NotImplementedError("numpy() is only available when eager execution is enabled.")
        return self.read_value().numpy()  # type: ignore[attr-defined]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.numpy(), dtype=dtype)

    # -- the rest ------------------------------------------------------------------------------------------------

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    def _set_save_slice_info(self, save_slice_info: Any) -> None:
        self._save_slice_info = save_slice_info

    def _saveable(self, name: str) -> Any:
        """The saveable of the variable under a name."""
        raise NotImplementedError

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        return {VARIABLE_VALUE_KEY: lambda name="": self._saveable(name or self._shared_name)}

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The variable as a VariableDef, with names relative to `export_scope`; None if it is outside that scope."""
        self._need_graph()
        if export_scope is not None and not self._name.startswith(export_scope):
            return None

        def inside(name: str) -> str:
            return name.removeprefix(export_scope + "/") if export_scope else name

        proto = protos.VariableDef(
            variable_name=inside(self._element.name),
            initializer_name=inside(self._initializer_op.name),
            is_resource=isinstance(self, ResourceVariable),
            trainable=self._trainable,
            synchronization=self._synchronization.value,
            aggregation=self._aggregation.value,
        )
        if self._initial_value is not None:
            proto.initial_value_name = inside(self._initial_value.name)
        if self._snapshot is not None:
            proto.snapshot_name = inside(self._snapshot.name)
        if self._save_slice_info is not None:
            proto.save_slice_info_def.CopyFrom(self._save_slice_info.to_proto(export_scope))
        return proto

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """Recreates the variable that `variable_def` describes. Its ops must be in the graph already."""
        kind = ResourceVariable if variable_def.is_resource else RefVariable
        return kind(variable_def=variable_def, import_scope=import_scope)

    def _settle_proto(self, variable_def: Any, import_scope: str | None) -> None:
        """Reads the fields of a VariableDef that both kinds share."""
        self._caching_device = None
        self._settle(
            {
                "trainable": variable_def.trainable,
                "synchronization": VariableSynchronization(variable_def.synchronization),
                "aggregation": VariableAggregation(variable_def.aggregation),
            }
        )
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo.from_proto(variable_def.save_slice_info_def, import_scope)

    def __iter__(self) -> Any:
        if getattr(self._element, "is_eager", False):
            return iter(self.read_value())
        raise TypeError("'Variable' object is not iterable.")

    def __hash__(self) -> int:
        if settings.tensor_equality and getattr(self._element, "is_eager", False):
            raise TypeError(f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})")
        return id(self)

    def __eq__(self, other: object) -> Any:
        if settings.tensor_equality and (isinstance(other, (Tensor, Variable)) or context.executing_eagerly()):
            return self.value() == other
        return self is other

    def __ne__(self, other: object) -> Any:
        if settings.tensor_equality and (isinstance(other, (Tensor, Variable)) or context.executing_eagerly()):
            return self.value() != other
        return self is not other

    def __repr__(self) -> str:
        described = f"<tf.Variable '{self.name}' shape={self.shape} dtype={self._dtype.name}"
        if getattr(self._element, "is_eager", False) and context.executing_eagerly():
            return f"{described}, numpy={array_text(self.numpy())}>"
        return described + ">"

    def __getitem__(self, item: Any) -> Any:
        return slicing.slice_helper(self.value(), item, self)


export(v1="Variable")(Variable)


@export(v2="Variable")
class VariableV2Form(Variable):
    """The 2.x constructor of `Variable`: it always creates a resource variable. All variables are instances of it."""


def _initial_tensor(initial_value: Any, dtype: Any, in_scope: bool) -> Any:
    """The initial value as a tensor, in the same scope as in TensorFlow."""
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if callable(initial_value) and not isinstance(initial_value, (Tensor, Variable)):
        with name_scope("Initializer"), device(None):
            return convert_to_tensor(initial_value(), wanted, name="initial_value")
    with name_scope("Initializer") if in_scope else nullcontext():
        return convert_to_tensor(initial_value, wanted, name="initial_value")


class MadeVariable(Variable):
    """Construction of both kinds: from an initial value, or from a VariableDef."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        self._validate_shape, self._caching_device = validate_shape, caching_device
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        self._settle(
            {
                "trainable": trainable,
                "synchronization": synchronization,
                "aggregation": aggregation,
                "constraint": constraint,
                "name": name,
            }
        )
        if context.executing_eagerly():
            self._make_eager(initial_value, dtype, name, shape)
            return
        if collections is not None and not isinstance(collections, (list, tuple, set)):
            raise ValueError(
                f"collections argument to Variable constructor must be a list, tuple, or set. Got {collections!r} of type {type(collections)}"
            )
        graph = context.get_default_graph()
        with control_dependencies(None), name_scope(name, "Variable", None) as scope:
            self._name = scope[:-1]
            with graph._attr_scope({"_class": (f"loc:@{self._name}",)}):
                initial = _initial_tensor(initial_value, dtype, isinstance(self, ResourceVariable))
            self._initial_value = initial
            # A handle keeps the shape of its initial value, although assignments may change it.
            known = initial.static_shape if validate_shape or isinstance(self, ResourceVariable) else Shape(None)
            self._static = known if shape is None else as_shape(shape)
            self._build(graph, initial, scope)
            self._name = self._element.op.name  # an empty name is replaced by the op's
        self._join_collections(collections)

    def _build(self, graph: Any, initial: Tensor, scope: str) -> None:
        """Adds the variable's op, its initializer and its first read."""
        raise NotImplementedError

    def _make_eager(self, initial_value: Any, dtype: Any, name: str | None, shape: Any) -> None:
        raise NotImplementedError

    def _from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        graph = context.get_default_graph()

        def element(name: str, kind: type = Tensor, needed: bool = False) -> Any:
            found = graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name) if name else None
            if not isinstance(found, kind) and (name or needed):
                raise InvalidArgumentError(
                    None, None, f"A VariableDef names {name!r:.200}, which is no {kind.__name__}."
                )
            return found

        self._element = element(variable_def.variable_name, needed=True)
        self._name = self._element.op.name
        self._initializer_op = element(variable_def.initializer_name, Operation)
        self._initial_value = element(variable_def.initial_value_name)
        self._snapshot = element(variable_def.snapshot_name)
        self._adopt()
        self._settle_proto(variable_def, import_scope)

    def _adopt(self) -> None:
        """Takes dtype and shape from the op that a VariableDef names."""
        raise NotImplementedError


def _slice_spec(variable: Variable) -> str:
    """The part of a partitioned variable in the notation of save ops."""
    info = variable._get_save_slice_info()
    return "" if info is None else info.spec


class RefVariable(MadeVariable):
    """A 1.x variable: an op whose output is a mutable reference."""

    def _build(self, graph: Any, initial: Tensor, scope: str) -> None:
        if self._validate_shape and not initial.static_shape.known:
            raise ValueError(f"initial_value must have a shape specified: {initial}")
        self._dtype = initial.dtype.base_dtype._as_ref
        self._element = state_ops.VARIABLE_V2(shape=self._static, dtype=initial.dtype.base_dtype, name=scope)
        with graph.colocate_with(self._element.op, ignore_existing=False):
            self._initializer_op = state_ops.ASSIGN(
                self._element, initial, validate_shape=self._validate_shape, use_locking=True, name="Assign"
            ).op
            with device(self._caching_device) if self._caching_device is not None else nullcontext():
                self._snapshot = shaping.identity(self._element, name="read")

    def value(self) -> Tensor:
        return self._snapshot

    def read_value(self) -> Tensor:
        return shaping.identity(self._element, name="read")

    def _saveable(self, name: str) -> Any:
        return reference_saveable(self, _slice_spec(self), name)

    def _ref(self) -> Tensor:
        return self._element

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape.

        Raises:
            ValueError: `shape` contradicts the static shape.
        """
        self._element.set_shape(shape)
        self._snapshot.set_shape(shape)
        self._static = self._element.static_shape

    def is_initialized(self, name: str | None = None) -> Tensor:
        return state_ops.IS_VARIABLE_INITIALIZED(self._element, name=name)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns `value`. Returns the updated value, or the op if `read_value` is False."""
        result = state_ops.ASSIGN(self._element, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`. Returns the updated value, or the op if `read_value` is False."""
        result = state_ops.ASSIGN_ADD(self._element, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`. Returns the updated value, or the op if `read_value` is False."""
        result = state_ops.ASSIGN_SUB(self._element, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def _adopt(self) -> None:
        self._dtype, self._static = self._element.dtype, self._element.static_shape

    def _scatter(self, kind: str, indices: Any, updates: Any, name: str | None, use_locking: bool = False) -> Any:
        by_reference, _ = scatter_ops.SCATTERS[kind]
        return by_reference(self._element, indices, updates, use_locking=use_locking, name=name)

    def _scatter_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        by_reference, _ = scatter_ops.SCATTERS_ND[kind]
        return by_reference(self._element, indices, updates, use_locking=True, name=name)


class ResourceVariable(MadeVariable):
    """A resource variable: it has a handle, and reads are explicit and atomic."""

    _cached: Tensor | None = None  # the value on the caching device, used for all later reads
    initialized_by_function = False  # the first call of the function that created it assigns its initial value

    def _build(self, graph: Any, initial: Tensor, scope: str) -> None:
        self._dtype = initial.dtype.base_dtype
        self._element = state_ops.VAR_HANDLE_OP(
            dtype=self._dtype, shape=self._static, shared_name=self._name, name=scope
        )
        self._element.variable = weakref.ref(self)
        with name_scope("IsInitialized"):
            self._is_initialized_op = state_ops.VAR_IS_INITIALIZED_OP(self._element)
        with (
            name_scope("Assign") as assign_scope,
            graph.colocate_with(None, ignore_existing=True),
            device(self._element.device),
        ):
            self._initializer_op = state_ops.ASSIGN_VARIABLE_OP(self._element, initial, name=assign_scope)
        with name_scope("Read"), device(self._element.device):
            self._snapshot = state_ops.READ_VARIABLE_OP(self._element, dtype=self._dtype)
            if self._caching_device is not None:
                with device(self._caching_device):
                    self._cached = shaping.identity(self._snapshot)

    def _make_eager(self, initial_value: Any, dtype: Any, name: str | None, shape: Any) -> None:
        later = isinstance(initial_value, _Later)
        with name_scope(name, "Variable") as scope:
            initial = initial_value.value if later else _initial_tensor(initial_value, dtype, False)
            self._name = scope[:-1]
        self._dtype, self._static = initial.dtype.base_dtype, initial.static_shape if shape is None else as_shape(shape)
        if not self._static.compatible(initial.static_shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({initial.shape}) is not compatible with the "
                f"explicitly supplied `shape` argument ({shape})."
            )
        self._element = state_ops.VAR_HANDLE_OP(
            dtype=self._dtype, shape=self._static, shared_name=ANONYMOUS, container=self._name
        )
        self._element.variable = weakref.ref(self)
        if not later:
            state_ops.ASSIGN_VARIABLE_OP(self._element, initial)
        self._initial_value = self._initializer_op = self._snapshot = None

    def _read(self) -> Tensor:
        place = "" if getattr(self._element, "is_eager", False) else self._element.device
        if not place:
            return state_ops.READ_VARIABLE_OP(self._element, dtype=self._dtype)
        # A variable is read where it is, whatever the device of the op that uses its value.
        with colocate_with(None, ignore_existing=True), device(place):
            return state_ops.READ_VARIABLE_OP(self._element, dtype=self._dtype)

    def value(self) -> Tensor:
        return self._read() if self._cached is None else self._cached

    def _saveable(self, name: str) -> Any:
        return resource_saveable(self, _slice_spec(self), name)

    def set_shape(self, shape: Any) -> None:
        if not getattr(self._element, "is_eager", False):
            raise NotImplementedError("ResourceVariable does not implement set_shape()")
        self._static = self._static.merge(as_shape(shape))

    def __bool__(self) -> bool:
        return bool(self.read_value())

    def __int__(self) -> int:
        return int(self.value())  # type: ignore[call-overload]

    def __float__(self) -> float:
        return float(self.value())  # type: ignore[arg-type]

    def __complex__(self) -> complex:
        return complex(self.value())  # type: ignore[arg-type]

    def __deepcopy__(self, memo: Any) -> ResourceVariable:
        """Creates a variable with the same value (eager mode).

        Raises:
            NotImplementedError: in graph mode.
        """
        if not getattr(self._element, "is_eager", False):
            raise NotImplementedError("__deepcopy__() is only available when eager execution is enabled.")
        return ResourceVariable(
            self.read_value(),
            trainable=self._trainable,
            constraint=self._constraint,
            dtype=self._dtype,
            name=self._name,
            synchronization=self._synchronization,
            aggregation=self._aggregation,
            shape=self._static,
        )

    def read_value(self) -> Tensor:
        with name_scope("Read"):
            value = self._read()
        return shaping.identity(value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        return state_ops.VAR_IS_INITIALIZED_OP(self._element, name=name)

    def _checked(self, value: Any) -> Any:
        value = convert_to_tensor(value, self._dtype)
        if not self._static.compatible(value.static_shape):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape {self.shape}, and the assigned value shape {value.shape} are incompatible."
            )
        return value

    def _after(self, update: Any, read_value: bool) -> Any:
        """The result of an assignment: the op or, as in TensorFlow, an object that reads the updated value."""
        if context.executing_eagerly():
            return self if read_value else None
        if not read_value:
            return update
        return UnreadVariable(self, update)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns `value`. Returns the updated value, or the op if `read_value` is False."""
        update = state_ops.ASSIGN_VARIABLE_OP(
            self._element, self._checked(value), validate_shape=self._validate_shape, name=name
        )
        return self._after(update, read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`. Returns the updated value, or the op if `read_value` is False."""
        delta = convert_to_tensor(delta, self._dtype)
        return self._after(state_ops.ASSIGN_ADD_VARIABLE_OP(self._element, delta, name=name), read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`. Returns the updated value, or the op if `read_value` is False."""
        delta = convert_to_tensor(delta, self._dtype)
        return self._after(state_ops.ASSIGN_SUB_VARIABLE_OP(self._element, delta, name=name), read_value)

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def _adopt(self) -> None:
        self._dtype, self._static = self._element.op.attr("dtype"), self._element.op.attr("shape")
        if self._snapshot is None:
            self._snapshot = self._read()

    # -- parts ---------------------------------------------------------------------------------------------------

    def _scatter(self, kind: str, indices: Any, updates: Any, name: str | None, use_locking: bool = False) -> Any:
        _, by_handle = scatter_ops.SCATTERS[kind]
        updates = convert_to_tensor(updates, self._dtype)
        return self._after(by_handle(self._element, indices, updates, name=name), True)

    def _scatter_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        _, by_handle = scatter_ops.SCATTERS_ND[kind]
        updates = convert_to_tensor(updates, self._dtype)
        return self._after(by_handle(self._element, indices, updates, name=name), True)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Gathers rows of the variable without reading the others."""
        with name_scope("Gather" if name is None else name) as scope:
            return gather_ops.RESOURCE_GATHER(self._element, indices, dtype=self._dtype, name=scope)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Gathers elements or slices of the variable at coordinates."""
        with name_scope("GatherNd" if name is None else name) as scope:
            value = gather_ops.RESOURCE_GATHER_ND(self._element, indices, dtype=self._dtype, name=scope)
        return shaping.identity(value)


class UnreadVariable(ResourceVariable):
    """A variable after an update: reading it waits for the update, and `op` is the update."""

    def __init__(self, variable: ResourceVariable, update: Operation) -> None:
        for key, value in vars(variable).items():
            setattr(self, key, value)
        self._update, self._cached = update, None
        self._snapshot = self._read()

    @property
    def name(self) -> str:
        return self._update.name

    @property
    def op(self) -> Operation:
        return self._update

    def _control_element(self) -> Operation:
        return self._update

    def _read(self) -> Tensor:
        with control_dependencies([self._update]):
            return super()._read()

    def _dense_var_to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
        if not as_ref and dtype in (None, self._dtype):
            return self._snapshot
        return super()._dense_var_to_tensor(dtype, name, as_ref)


# -- variables as tensors ----------------------------------------------------------------------------------------


def _convert(value: Variable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    return value._dense_var_to_tensor(dtype, name, as_ref)


register_tensor_conversion_function(Variable, _convert, 10)
