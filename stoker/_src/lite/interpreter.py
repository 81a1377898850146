"""`tf.lite.Interpreter`: runs a TFLite model on LiteRT.

Models are verified before LiteRT sees them (`verification/`), because it reads the file in place and trusts it. Errors of the runtime are
`ValueError`s, as documented for 1.x. Later versions raise `RuntimeError` for some of them, so our class derives from both.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import math
import mmap
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from stoker._src.base.errors import OpError
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.lite.verification.meaning import Limits, limits, verify

_MOST_STRINGS = 1 << 24
# LiteRT would read the number of the resource as if it were a string of any length.
_HANDLE = "Tensor {} is the handle of a table or variable, which has no value to read."
_HELD_VIEW = "There is at least 1 reference to internal data"


class InterpreterError(ValueError, RuntimeError):
    """A failure of LiteRT to prepare or run a model."""


class DelegateError(OSError, ValueError):
    """The library of a delegate could not be loaded."""


@export("lite.experimental.OpResolverType")
class OpResolverType(enum.Enum):
    """The kernels that run a model: `AUTO` and `BUILTIN` are the optimized ones, `BUILTIN_REF` the reference ones."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Delegate:
    """A delegate from a shared library. Interpreters that use it hold a reference, because it must outlive them."""

    def __init__(self, library: str, options: dict[Any, Any] | None) -> None:
        litert = _litert()
        self.library = library
        try:
            # If the library cannot be opened, LiteRT's own wrapper also fails in its destructor.
            handle = ctypes.CDLL(library)
            for name in ("tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"):
                if not hasattr(handle, name):
                    raise OSError(f"it has no function {name}")
            self.loaded = litert.load_delegate(library, options)
        except (OSError, ValueError, RuntimeError, AttributeError) as error:
            raise DelegateError(f"Failed to load delegate from {library}: {error}") from error

    def __repr__(self) -> str:
        return f"<delegate {self.library!r}>"


@export("lite.experimental.load_delegate")
def load_delegate(library: str, options: dict[Any, Any] | None = None) -> Delegate:
    """Loads a delegate from a shared library, for `Interpreter(experimental_delegates=[...])`.

    Args:
        library: the name of the library.
        options: the options of the delegate. Keys and values are passed as strings.

    Raises:
        ValueError: the library cannot be loaded. The message contains its name.
    """
    return Delegate(library, options)


def _litert() -> Any:
    from ai_edge_litert import interpreter

    return interpreter


@export("lite.Interpreter")
class Interpreter:
    """Runs a TFLite model.

    The order of calls: `resize_tensor_input` (optional), `allocate_tensors`, `set_tensor`, `invoke`, `get_tensor`. An instance may be used
    by one thread at a time. `invoke` releases the GIL, so several instances run in parallel.

    Args:
        model_path: path of the model's file.
        model_content: the model as bytes, instead of a file.
        experimental_delegates: delegates from `load_delegate`.
        num_threads: the number of threads for kernels. With -1 or None, LiteRT decides.
        experimental_op_resolver_type: which kernels to use.
        experimental_preserve_all_tensors: whether to keep intermediate results, so that `get_tensor` can read them.
        experimental_disable_delegate_clustering: whether delegates get ops one by one.
        experimental_default_delegate_latest_features: whether the default delegate uses its latest features.

    Raises:
        ValueError: the model cannot be read, is damaged, or has ops that LiteRT does not know.
    """

    def __init__(
        self,
        model_path: str | bytes | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Iterable[Delegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
    ) -> None:
        if not model_path and not model_content:
            raise ValueError("`model_path` or `model_content` must be specified.")
        if model_path and model_content:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        source, self._limits = (
            self._from_file(os.fsdecode(model_path)) if model_path else self._from_content(model_content)
        )
        delegates = list(experimental_delegates or [])
        for delegate in delegates:
            if not isinstance(delegate, Delegate):
                raise ValueError(f"{delegate!r} is not a delegate: load_delegate makes them.")
        options: dict[str, Any] = {}
        if num_threads is not None and num_threads != -1:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
            options["num_threads"] = num_threads
        resolver = experimental_op_resolver_type
        if experimental_preserve_all_tensors and resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN):
            # Ops that a delegate takes over leave no intermediate results. LiteRT only warns about this, as we do.
            resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        litert = _litert()
        self._delegates = delegates
        self._reported = ""
        self._litert = self._checked(
            litert.Interpreter,
            **source,
            **options,
            experimental_delegates=[delegate.loaded for delegate in delegates] or None,
            experimental_op_resolver_type=litert.OpResolverType[resolver.name],
            experimental_preserve_all_tensors=experimental_preserve_all_tensors,
            experimental_disable_delegate_clustering=experimental_disable_delegate_clustering,
            experimental_default_delegate_latest_features=experimental_default_delegate_latest_features,
        )
        self._set: set[int] = set()
        """The inputs that have a value."""
        self._has_results = False

    @staticmethod
    def _from_content(content: Any) -> tuple[dict[str, Any], Limits]:
        """What LiteRT's interpreter takes, and what callers may not do."""
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise ValueError(f"model_content is bytes, not {type(content).__name__}.")
        content = bytes(content)
        return {"model_content": content}, limits(verify(content))

    @staticmethod
    def _from_file(path: str) -> tuple[dict[str, Any], Limits]:
        try:
            if not os.path.isfile(path):
                with gfile.GFile(path, "rb") as file:
                    return Interpreter._from_content(file.read())
            with open(path, "rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    raise ValueError(f"Could not open '{path}': the file is empty.")
                # Mapped, not read: the file may be large, and LiteRT maps it as well.
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    return {"model_path": path}, _verify_mapped(content)
        except (OSError, OpError) as error:
            raise ValueError(f"Could not open '{path}': {error}") from error

    def _checked(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls LiteRT. Its failures become `InterpreterError`, except that a call refused because of a live view stays a `RuntimeError`."""
        try:
            return function(*args, **kwargs)
        except (ValueError, RuntimeError) as error:
            message = str(error)
            if message.startswith(_HELD_VIEW):
                raise RuntimeError(" ".join(message.split())) from None
            # LiteRT repeats the messages of earlier failures.
            new = message.removeprefix(self._reported) if self._reported else message
            if isinstance(error, RuntimeError):
                self._reported = message
            raise InterpreterError(new.strip() or message.strip() or "LiteRT gives no reason.") from error
        except (MemoryError, OverflowError) as error:
            raise InterpreterError(f"The model needs more memory than there is: {error}") from error

    def allocate_tensors(self) -> None:
        """Plans and allocates the memory of all tensors. Necessary before `invoke`, and again after `resize_tensor_input`.

        Inputs are zeros or empty strings until they are set.

        Raises:
            ValueError: an op does not accept its arguments, or has no kernel.
            RuntimeError: an array from `tensor()` is still held.
        """
        self._checked(self._litert.allocate_tensors)
        for detail in self.get_input_details():
            if detail["index"] not in self._set:
                self._checked(self._clear, detail)
                self._set.add(detail["index"])

    def _clear(self, detail: dict[str, Any]) -> None:
        """Sets an input to zeros or empty strings. LiteRT leaves what was in memory, and reads strings there by their addresses."""
        if detail["dtype"] is np.object_:
            return  # a resource
        if detail["dtype"] is np.bytes_:
            count = math.prod(int(size) for size in detail["shape"])
            if count > _MOST_STRINGS:
                raise MemoryError(f"input '{detail['name']}' has {count} strings")
            self._litert.set_tensor(detail["index"], _texts(np.full(detail["shape"], b"", object)))
        elif not detail["shape"].size:
            self._litert.set_tensor(detail["index"], np.zeros([], detail["dtype"]))
        elif detail["shape"].all():
            self._litert.tensor(detail["index"])()[...] = 0

    @functools.cached_property
    def _not_numbers(self) -> dict[int, Any]:
        return self._not_numbers_of(0)

    def _not_numbers_of(self, subgraph: int) -> dict[int, Any]:
        """The type of each tensor of strings (`np.bytes_`), and of each handle of a table or variable (`np.object_`)."""
        details = self._checked(self._litert.get_tensor_details, subgraph)
        return {each["index"]: each["dtype"] for each in details if each["dtype"] in (np.bytes_, np.object_)}

    def get_input_details(self) -> list[dict[str, Any]]:
        """A dictionary for each input of the model.

        Keys: `name`, `index` (for the other methods), `shape`, `shape_signature` (with -1 for sizes that are free), `dtype` (a NumPy type),
        `quantization` (scale and zero point, both 0 if there is none), `quantization_parameters` (`scales`, `zero_points`,
        `quantized_dimension`) and `sparsity_parameters`.
        """
        return self._litert.get_input_details()

    def get_output_details(self) -> list[dict[str, Any]]:
        """A dictionary for each output of the model, with the keys of `get_input_details`."""
        return self._litert.get_output_details()

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """A dictionary for each tensor of a subgraph that has a name; temporary tensors have none."""
        return [d for d in self._checked(self._litert.get_tensor_details, subgraph_index) if d["name"]]

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray[Any, Any]:
        """A copy of a tensor's value. Intermediate results are readable with `experimental_preserve_all_tensors` only."""
        kind = (self._not_numbers_of(subgraph_index) if subgraph_index else self._not_numbers).get(tensor_index)
        if kind is np.object_:
            raise InterpreterError(_HANDLE.format(tensor_index))
        has_value = not subgraph_index and (self._has_results or tensor_index in self._set)
        if kind is np.bytes_ and not has_value:
            raise InterpreterError(f"Tensor {tensor_index} of strings has no value before the model has run.")
        return self._checked(self._litert.get_tensor, tensor_index, subgraph_index)

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies `value` into an input.

        Raises:
            ValueError: shape or type differ from the tensor's, memory is not allocated yet, the tensor is a constant, or a string is neither bytes
                nor text.
        """
        if tensor_index in self._limits.constants:
            # LiteRT would write into the file, or into the bytes that the model was given in.
            raise InterpreterError(f"Tensor {tensor_index} is a constant of the model, which cannot be set.")
        if self._not_numbers.get(tensor_index) is np.bytes_:
            value = _texts(value)
        self._checked(self._litert.set_tensor, tensor_index, value)
        self._set.add(tensor_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Changes the shape of an input. `allocate_tensors` must be called afterwards.

        Args:
            input_index: the index of the input.
            tensor_size: its shape.
            strict: whether only sizes that are -1 in `shape_signature` may change.

        Raises:
            ValueError: the tensor does not accept this shape.
            RuntimeError: an array from `tensor()` is still held.
        """
        sizes = [int(size) for size in tensor_size]
        if any(not 0 <= size < 2**31 for size in sizes):
            raise InterpreterError(f"An input cannot have the shape {sizes}.")
        shapes = {int(detail["index"]): detail["shape"] for detail in self.get_input_details()}
        if input_index not in shapes:
            raise InterpreterError(f"Tensor {input_index} is not an input of the model.")
        if self._limits.keeps_ranks and len(sizes) != len(shapes[input_index]) > 0:
            before = shapes[input_index].tolist()
            raise InterpreterError(
                f"An input of the shape {before} cannot be resized to {sizes}: dimensions are missing or too many."
            )
        self._checked(self._litert.resize_tensor_input, input_index, sizes, strict)
        self._set.discard(input_index)
        self._has_results = False

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray[Any, Any]]:
        """Returns a function that returns an array on the tensor's memory, for access without a copy.

        The function may be kept, but the array may not: while it exists, `allocate_tensors`, `resize_tensor_input` and `invoke` raise
        `RuntimeError`, since they may move the memory. The arrays of constants are read only.
        """
        kind = self._not_numbers.get(tensor_index)
        if kind is np.object_:
            raise InterpreterError(_HANDLE.format(tensor_index))
        if kind is np.bytes_:
            raise InterpreterError(f"Tensor {tensor_index} has strings, which are no array in memory: use get_tensor.")
        view = self._litert.tensor(tensor_index)
        if tensor_index in self._limits.constants:
            return lambda: _read_only(self._checked(view))
        return lambda: self._checked(view)

    def invoke(self) -> None:
        """Runs the model. Releases the GIL.

        Raises:
            ValueError: an op failed, or memory is not allocated yet.
            RuntimeError: an array from `tensor()` is still held.
        """
        self._checked(self._litert.invoke)
        self._has_results = True

    def reset_all_variables(self) -> None:
        """Sets the variable tensors of the model (the states of recurrent ops) to zero."""
        self._checked(self._litert.reset_all_variables)

    def num_subgraphs(self) -> int:
        """The number of subgraphs of the model."""
        return self._litert.num_subgraphs()

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of the inputs and outputs of each signature: `{"serving_default": {"inputs": [...], "outputs": [...]}}`."""
        return self._litert.get_signature_list()

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A callable that runs a signature.

        Args:
            signature_key: the name of the signature. It is optional if there is only one.

        Raises:
            ValueError: the signature does not exist.
        """
        return SignatureRunner(self, signature_key)


class SignatureRunner:
    """Runs a signature: arrays by name in, a dictionary of arrays out. Inputs are resized as needed."""

    def __init__(self, interpreter: Interpreter, signature_key: str | None) -> None:
        self._interpreter = interpreter
        self._runner = interpreter._checked(interpreter._litert.get_signature_runner, signature_key)
        for name, detail in self.get_output_details().items():
            if detail["dtype"] is np.object_:
                raise InterpreterError(f"Output '{name}': {_HANDLE.format(detail['index'])}")

    def __call__(self, **inputs: Any) -> dict[str, np.ndarray[Any, Any]]:
        details, given = self.get_input_details(), {name: np.asarray(value) for name, value in inputs.items()}
        for name, value in given.items():
            if name in details and details[name]["dtype"] is np.bytes_:
                given[name] = _texts(value)
            if name in details and value.ndim != len(details[name]["shape_signature"]):
                wanted = [None if size < 0 else int(size) for size in details[name]["shape_signature"]]
                raise ValueError(f"The input '{name}' has the shape {list(value.shape)}, and the model takes {wanted}.")
        return self._interpreter._checked(self._runner, **given)

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """The details of the inputs by name."""
        return self._runner.get_input_details()

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """The details of the outputs by name."""
        return self._runner.get_output_details()


# NumPy makes an array of strings without bytes only as a part of another.
_EMPTY_TEXT = np.zeros((), [("text", "S0"), ("rest", "i1")])["text"]


def _texts(value: Any) -> Any:
    """Strings as LiteRT reads them. Of a single one it reads the bytes of the array, where an object has its address, and text four bytes a character."""
    if not isinstance(value, np.ndarray) or value.shape or value.dtype.kind not in "OU":
        return value
    text = value.item()
    if isinstance(text, str):
        text = text.encode()
    if not isinstance(text, bytes):
        raise ValueError(f"A string is bytes or text, found {text!r} of type {type(text).__name__}.")
    return np.frombuffer(text, f"S{len(text)}").reshape(()) if text else _EMPTY_TEXT


def _read_only(array: Any) -> Any:
    # LiteRT gives a tensor without dimensions as a number.
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array


def _verify_mapped(content: mmap.mmap) -> Limits:
    # This is a separate function, so that no view of the file remains when it is closed.
    try:
        return limits(verify(content))
    except ValueError as error:
        raise ValueError(str(error)) from None
