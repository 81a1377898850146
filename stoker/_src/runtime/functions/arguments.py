"""The arguments of a `tf.function`: bound to its parameters, and split into tensors and constants of the trace."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

import numpy as np

from stoker._src.base import nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec, kind_of, type_spec_from_value
from stoker._src.ops.variables import variables

_EMPTY = inspect.Parameter.empty
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Given:
    """The arguments of one call, or of one trace.

    Attributes:
        args, kwargs: the arguments as they are passed to the function.
        leaves: the flattened arguments.
        specs: the TensorSpec of each leaf that is a tensor, None for other leaves.
        kind: a hashable key of everything except the shapes. Calls of different kinds never share a trace.
        shapes: the shapes of the tensors, in order.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.leaves: list[Any] = []
        self._specs: list[Any] = []  # TensorSpecs, tensors that are converted to TensorSpecs on demand, or None
        shapes: list[Shape] = []
        kinds: list[Any] = []
        for item in nest.flatten((args, kwargs)):
            if isinstance(item, Tensor):
                self.leaves.append(item)
                self._specs.append(item)
                shapes.append(item.static_shape)
                kinds.append(item.dtype.base_dtype)
                continue
            parts, specs, whole = _parts(item)
            if whole is not None:
                kinds.append(kind_of(whole))
            self.leaves += parts
            self._specs += specs
            shapes += [spec.static_shape for spec in specs if spec is not None]
            kinds += [_literal(part) if spec is None else spec.dtype for part, spec in zip(parts, specs)]
        nested = any(map(nest.is_nested, args)) or any(map(nest.is_nested, kwargs.values()))
        structure = repr(nest.map_structure(lambda _: None, (args, kwargs))) if nested else (len(args), *kwargs)
        self.kind = (structure, *kinds)
        self.shapes = tuple(shapes)

    @property
    def values(self) -> list[Any]:
        return [leaf for leaf, spec in zip(self.leaves, self._specs) if spec is not None]

    @property
    def specs(self) -> list[TensorSpec | None]:
        return [_spec(each) if isinstance(each, Tensor) else each for each in self._specs]

    def with_specs(self, specs: Iterable[TensorSpec]) -> None:
        """Replaces the specs of the tensors, in order."""
        new = iter(specs)
        self._specs = [None if each is None else next(new, each) for each in self._specs]
        self.shapes = tuple(each.static_shape for each in self._specs if each is not None)

    def with_shapes(self, shapes: list[Shape]) -> None:
        """Replaces the shapes of the tensors, in order."""
        known = (spec for spec in self.specs if spec is not None)
        self.with_specs(TensorSpec(shape, spec.dtype, spec.name) for shape, spec in zip(shapes, known))

    def described(self, names: list[str]) -> tuple[Any, Any]:
        """Returns the arguments with a spec in place of each tensor, named by `names` (one name per leaf)."""
        described = []
        every, position = self.specs, 0
        for item in nest.flatten((self.args, self.kwargs)):
            parts, _, whole = _parts(item)
            spec, name = every[position], names[position]
            position += len(parts)
            if whole is not None:
                described.append(whole)
            else:
                described.append(item if spec is None else TensorSpec(spec.static_shape, spec.dtype, spec.name or name))
        return nest.pack_sequence_as((self.args, self.kwargs), described)

    def packed(self, leaves: list[Any]) -> tuple[Any, Any]:
        """Packs other leaves into the structure of the arguments."""
        return nest.pack_sequence_as((self.args, self.kwargs), leaves, expand_composites=True)


def is_value(leaf: Any) -> bool:
    """Whether an argument is passed to the function as a tensor. Other arguments are constants of the trace."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, TensorSpec)) or type(leaf).__module__.startswith("torch")


def _spec(leaf: Any) -> TensorSpec | None:
    if isinstance(leaf, TensorSpec):
        return leaf
    if isinstance(leaf, Tensor):
        return TensorSpec(leaf.static_shape, leaf.dtype.base_dtype)
    return TensorSpec(np.shape(leaf), as_dtype(np.asarray(leaf).dtype)) if is_value(leaf) else None


def _parts(item: Any) -> tuple[list[Any], list[Any], Any]:
    """Returns the leaves of one argument, their specs, and the spec of the whole composite (None if the argument is a single leaf)."""
    parts = nest.flatten(item, expand_composites=True)
    if len(parts) == 1 and parts[0] is item:
        return parts, [_spec(item)], None
    whole = item if isinstance(item, TypeSpec) else type_spec_from_value(item)
    return parts, nest.flatten(whole, expand_composites=True), whole


def type_text(value: Any) -> str:
    """Returns the type of an argument or a result in the form that messages show."""
    if isinstance(value, (Tensor, TensorSpec)):
        return repr(TensorSpec(value.static_shape, value.dtype))
    if isinstance(value, TypeSpec):
        return repr(value)
    if isinstance(value, dict):
        return f"Dict[{', '.join(f'[{key!r}, {type_text(item)}]' for key, item in value.items())}]"
    if isinstance(value, (list, tuple)):
        kind = "List" if isinstance(value, list) else "Tuple"
        return f"{kind}[{', '.join(map(type_text, value))}]"
    return f"Literal[{value!r}]"


class Identity:
    """Identifies an object in a key by identity. It holds a weak reference where possible; a collected object equals no other."""

    __slots__ = ("_hash", "_ref")

    def __init__(self, target: Any) -> None:
        self._hash = self._hashed(target)
        try:  # each lookup creates a new bound method, so its object is referenced instead
            method = isinstance(target, MethodType)
            self._ref: Callable[[], Any] = weakref.WeakMethod(target) if method else weakref.ref(target)
        except TypeError:
            self._ref = lambda: target

    def get(self) -> Any:
        """Returns the object; None if it has been collected."""
        return self._ref()

    @staticmethod
    def _hashed(target: Any) -> int:
        return id(target)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.get() is not None and self.get() is other.get()

    def __hash__(self) -> int:
        return self._hash


class _Equal(Identity):
    """Like `Identity`, but compares by the object's own equality."""

    __slots__ = ()
    __hash__ = Identity.__hash__

    @staticmethod
    def _hashed(target: Any) -> int:
        return hash(target)

    def __eq__(self, other: object) -> bool:
        mine, its = self.get(), other.get() if isinstance(other, _Equal) else None
        return mine is not None and (mine is its or (type(mine) is type(its) and bool(mine == its)))


def _literal(leaf: Any) -> Any:
    if isinstance(leaf, (bool, int, float, complex, str, bytes, type(None))):
        return (type(leaf).__name__, leaf)
    try:
        return Identity(leaf) if isinstance(leaf, variables.Variable) else _Equal(leaf)
    except TypeError:
        raise TypeError(
            f"Could not generate a generic TraceType for {leaf!r}. Please verify that it is immutable/hashable."
        ) from None


# ---- parameters -------------------------------------------------------------------------------------------------


class Parameters:
    """The parameters of a function, and its input signature if it has one.

    Raises:
        TypeError: the input signature is invalid or does not fit the function.
    """

    def __init__(self, function: Callable[..., Any], input_signature: Any) -> None:
        try:
            self.signature = inspect.signature(function)
        except ValueError:  # some C functions have no signature
            self.signature = inspect.signature(lambda *args, **kwargs: None)
        self.specs = None
        if input_signature is None:
            return
        if not isinstance(input_signature, (tuple, list)):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(input_signature)}.")
        self._take_specs(input_signature)

    @classmethod
    def of_signature(cls, signature: inspect.Signature, input_signature: Any = None) -> Parameters:
        """Returns the parameters of a function that is not at hand."""
        made = cls.__new__(cls)
        made.signature, made.specs = signature, None
        if input_signature is not None:
            made._take_specs(input_signature)
        return made

    def _take_specs(self, input_signature: Any) -> None:
        self.specs = tuple(input_signature)
        wrong = [spec for spec in nest.flatten(self.specs) if not isinstance(spec, TypeSpec)]
        if wrong:
            raise TypeError(
                "input_signature must be a possibly nested sequence of TensorSpec objects, got invalid args "
                f"{wrong} with types {[type(spec) for spec in wrong]}."
            )
        parameters = self.signature.parameters.values()
        places = sum(parameter.kind in _BY_POSITION for parameter in parameters)
        if len(self.specs) > places and not any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
            raise TypeError(f"input_signature contains {len(self.specs) - places} extra type constraints.")
        for parameter in parameters:
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is _EMPTY:
                raise TypeError(
                    f"Since input_signature is defined, keyword-only parameter `{parameter.name}` must have a default value"
                )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """Returns the arguments with defaults filled in, by position where the function allows it.

        Raises:
            TypeError: the arguments do not fit the function or its input signature.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if self.specs is None:
                return Given(bound.args, bound.kwargs)
            return self._fitted(bound)
        except _Misfit as error:
            raise TypeError(self._failed(str(error), args, kwargs)) from error.__cause__
        except TypeError as error:
            if str(error).startswith("Could not generate"):
                raise
            raise TypeError(self._failed(str(error), args, kwargs)) from None

    def _failed(self, why: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return (
            f"Binding inputs to tf.function failed due to `{why}`. Received args: {args} and kwargs: {kwargs} for "
            f"signature: {self}."
        )

    def _fitted(self, bound: inspect.BoundArguments) -> Given:
        """Converts arguments to the input signature. Arguments that it does not cover must equal their defaults."""
        specs = self.specs or ()
        if len(bound.args) < len(specs):
            raise _Misfit(f"missing a required argument: {len(specs)} are needed, {len(bound.args)} given")
        for name, parameter in list(self.signature.parameters.items())[len(specs) :]:
            given = bound.arguments.get(name)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD and given:
                raise _Misfit(f"got an unexpected keyword argument '{next(iter(given))}'")
            if parameter.default is not _EMPTY and given is not parameter.default and given != parameter.default:
                raise _Misfit(f"Can not cast {given!r} to Literal[{parameter.default!r}]")
        values = tuple(map(_as_specified, specs, bound.args))
        made = Given((*values, *bound.args[len(specs) :]), bound.kwargs)
        made.with_specs(nest.flatten(specs, expand_composites=True))
        return made

    def __str__(self) -> str:
        told = []
        for position, parameter in enumerate(self.signature.parameters.values()):
            plain, kind = str(parameter.replace(annotation=_EMPTY, default=_EMPTY)), ""
            if self.specs is not None and position < len(self.specs):
                kind = f": {type_text(self.specs[position])}"
            elif self.specs is not None and parameter.default is not _EMPTY:
                kind = f": {type_text(parameter.default)}"
            equals = " = " if kind else "="
            told.append(plain + kind + ("" if parameter.default is _EMPTY else f"{equals}<captured_default_value>"))
        return f"({', '.join(told)})"


class _Misfit(Exception):
    """Describes what is wrong with an argument."""


def _as_specified(spec: Any, value: Any) -> Any:
    """Converts an argument to its spec in the input signature. Plain values become tensors."""
    if isinstance(spec, TensorSpec) and nest.is_nested(value):
        value = _cast(spec, value)
    try:
        nest.assert_same_structure(spec, value)
    except (ValueError, TypeError) as error:
        raise _Misfit(f"Can not cast {value!r} to {spec!r}: {error}") from None
    return nest.map_structure(_cast, spec, value)


def _cast(spec: Any, leaf: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        if not spec.is_compatible_with(leaf):
            raise _Misfit(f"Can not cast {leaf!r} to {spec}")
        return leaf
    if isinstance(leaf, TensorSpec):
        tensor: Any = leaf
    elif isinstance(leaf, Tensor):
        tensor = leaf
    else:
        try:
            plain = isinstance(leaf, (bool, np.ndarray, np.generic)) and spec.dtype.name != "string"
            tensor = convert_to_tensor(np.asarray(leaf, spec.dtype.as_numpy_dtype) if plain else leaf, spec.dtype)
        except (TypeError, ValueError) as error:
            raise _Misfit(str(error)) from error
    if tensor.dtype.base_dtype is not spec.dtype or not spec.static_shape.compatible(tensor.static_shape):
        raise _Misfit(f"Can not cast {TensorSpec(tensor.static_shape, tensor.dtype)} to {spec}")
    return tensor


def argument_names(parameters: Parameters, args: Any, kwargs: Any) -> list[str]:
    """Returns a name for each argument: the name of its parameter, with a number for `*args`."""
    every = parameters.signature.parameters.values()
    names = [parameter.name for parameter in every if parameter.kind in _BY_POSITION][: len(args)]
    several = next((parameter.name for parameter in every if parameter.kind is parameter.VAR_POSITIONAL), "args")
    return [*names, *(f"{several}_{i}" for i in range(len(args) - len(names))), *sorted(kwargs)]


def leaf_names(parameters: Parameters, given: Given) -> list[str]:
    """Returns, for each leaf of the arguments, the name of the argument it belongs to."""
    arguments = [*given.args, *(given.kwargs[key] for key in sorted(given.kwargs))]
    named = zip(argument_names(parameters, given.args, given.kwargs), arguments)
    return [name for name, argument in named for _ in nest.flatten(argument, expand_composites=True)]
