"""`TFLiteConverter` of 1.x and 2.x: the settings of a conversion, and constructors from sessions, files and functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from stoker._src.base import dtypes, tf_logging
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.formats.keras_files import read_keras_model
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.lite import pictures, sources
from stoker._src.lite.convert import ConverterError, Source, convert_sources, finish
from stoker._src.lite.flatbuffer import write_model
from stoker._src.lite.interpreter import Interpreter, OpResolverType
from stoker._src.lite.lowering import Rules
from stoker._src.lite.model import Model
from stoker._src.lite.options import (
    GRAPHVIZ_DOT,
    TFLITE,
    OpsSet,
    Optimize,
    RepresentativeDataset,
    TargetSpec,
    listed,
    listed_types,
)
from stoker._src.lite.quantization.request import Request, quantize
from stoker._src.lite.versions import is_runtime
from stoker._src.runtime.functions.concrete_function import ConcreteFunction
from stoker._src.runtime.functions.def_function import function
from stoker._src.saved_model import constants

# The names that 1.x gives its pictures.
_AT_IMPORT, _AFTER = "toco_AT_IMPORT.dot", "toco_AFTER_TRANSFORMATIONS.dot"


_QUANTIZING = {Optimize.DEFAULT, Optimize.OPTIMIZE_FOR_SIZE, Optimize.OPTIMIZE_FOR_LATENCY}


class _Converter:
    """The part shared by both versions: the settings, and the conversion of sources to bytes."""

    def __init__(self, make: Callable[[], list[Source]]) -> None:
        self._make_sources = make
        self.allow_custom_ops = False
        self.target_spec = TargetSpec()
        self.optimizations: list[Optimize] = []
        self.representative_dataset: Any = None
        self.inference_input_type: Any = None
        self.inference_output_type: Any = None

    def _check_options(self) -> None:
        """Refuses options that are not what they should be, which would otherwise be without effect.

        Raises:
          ValueError: There is such an option.
        """
        listed("optimizations", self.optimizations, Optimize)
        listed("target_spec.supported_ops", self.target_spec.supported_ops, OpsSet)
        listed_types(self.target_spec.supported_types)

    def _rules(self) -> Rules:
        supported = set(self.target_spec.supported_ops)
        runtime = self.target_spec.min_runtime_version
        if runtime is not None and not is_runtime(runtime):
            raise ValueError(
                f"target_spec.min_runtime_version must be a version from 1.15.0 on, such as '1.15.0', or None, found {runtime!r}."
            )
        return Rules(
            select_ops=OpsSet.SELECT_TF_OPS in supported,
            custom_ops=bool(self.allow_custom_ops),
            user_select_ops=frozenset(self.target_spec.experimental_select_user_tf_ops),
            cells=not set(self.optimizations) & _QUANTIZING,
            to_bytes=self._numbers().to_bytes,
            runtime=runtime,
        )

    def _check_available(self) -> None:
        """Refuses settings that would change the result, and that nothing here carries out.

        Raises:
          NotImplementedError: There is such a setting.
        """
        asked = {
            "optimizations has tf.lite.Optimize.EXPERIMENTAL_SPARSITY": Optimize.EXPERIMENTAL_SPARSITY
            in set(self.optimizations),
            "target_spec.supported_ops has EXPERIMENTAL_STABLEHLO_OPS": OpsSet.EXPERIMENTAL_STABLEHLO_OPS
            in set(self.target_spec.supported_ops),
            "target_spec.experimental_supported_backends is set": bool(
                self.target_spec.experimental_supported_backends
            ),
            "conversion_summary_dir is set": bool(getattr(self, "conversion_summary_dir", None)),
        }
        found = [what for what, is_asked in asked.items() if is_asked]
        if found:
            raise NotImplementedError(f"The converter cannot do what is asked: {'; '.join(found)}.")

    def _checked_dataset(self) -> None:
        data = self.representative_dataset
        if data is None:
            return
        if not isinstance(data, RepresentativeDataset) and not callable(data):
            raise ValueError("Provide an input generator for representative_dataset")
        if isinstance(data, RepresentativeDataset) and data.input_gen is None:
            raise ValueError("Provide an input generator for representative_dataset")

    def _model(self, found: list[Source], observe: Callable[[str, Model], None] | None = None) -> Model:
        self._check_available()
        self._checked_dataset()
        model = convert_sources(found, self._rules(), observe)
        quantize(model, self._numbers())
        if observe is not None:
            observe("quantized", model)
        return model

    def _numbers(self) -> Request:
        """The quantization that the settings request."""
        return Request(
            optimize=bool(set(self.optimizations) & _QUANTIZING),
            supported_ops=frozenset(self.target_spec.supported_ops),
            supported_types=tuple(self.target_spec.supported_types),
            representative_dataset=self.representative_dataset,
            input_type=self.inference_input_type,
            output_type=self.inference_output_type,
            runtime=self.target_spec.min_runtime_version,
        )

    def _finished(self, model: Model) -> bytes:
        data = write_model(finish(model, self.target_spec.min_runtime_version))
        check_loads(model, data)
        return data


def check_loads(model: Model, data: bytes) -> None:
    """Loads a model of builtins in LiteRT and prepares all its operators.

    Raises:
      ConverterError: LiteRT refuses it.
    """
    if any(operator.code == "CUSTOM" for operator in model.operators()):
        return  # LiteRT has no kernels for it in this process
    try:
        # The plain kernels perform the same checks as a delegate's, and do not pack weights.
        Interpreter(
            model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        ).allocate_tensors()
    except ValueError as error:
        raise ConverterError(
            f"LiteRT does not accept the converted model: {error}{_blamed(model, str(error))}"
        ) from error


def _blamed(model: Model, message: str) -> str:
    """Replaces the operator number in a message of LiteRT by the name of the operator's result."""
    found = []
    for part in message.split("Node number ")[1:]:
        number, _, rest = part.partition(" (")
        kind = rest.partition(")")[0]
        if number.isdigit():
            for subgraph in model.subgraphs:
                if int(number) < len(subgraph.operators) and subgraph.operators[int(number)].kind == kind:
                    outputs = subgraph.operators[int(number)].outputs
                    found.append(f"{kind} makes '{outputs[0].name}'" if outputs else kind)
                    break
    return f" ({'; '.join(found)})" if found else ""


@export(v1="lite.TFLiteConverter")
class TFLiteConverter(_Converter):
    """Converts a graph to a TFLite model.

        converter = tf.lite.TFLiteConverter.from_session(session, [x], [y])
        open("model.tflite", "wb").write(converter.convert())

    Attributes:
      inference_type: Type of real numbers in the model: float32, or uint8 for a graph trained with fake quantization.
      inference_input_type: Type of the inputs. None means the type given by `inference_type`.
      inference_output_type: Type of the outputs, likewise.
      output_format: `TFLITE`, or `GRAPHVIZ_DOT` for a picture.
      quantized_input_stats: (mean, standard deviation) of each quantized input: real = (quantized - mean) / deviation.
      default_ranges_stats: (min, max) for tensors without a range, to experiment with quantization.
      drop_control_dependency: Whether control dependencies are dropped silently. If False, they are an error.
      reorder_across_fake_quant: Whether fake quantization that prevents folding of arithmetic or an activation is moved after it.
      change_concat_input_ranges: Whether the inputs and the output of a concatenation get one common range. Otherwise each keeps its trained range.
      allow_custom_ops: Whether ops without a builtin become custom ops, which the runtime must be given kernels for.
      dump_graphviz_dir: Folder for pictures of the model before and after the transformations.
      dump_graphviz_video: Whether to write a picture after each transformation.
      target_spec: The capabilities of the target.
      optimizations: Optimizations to apply, such as `[tf.lite.Optimize.DEFAULT]`.
      representative_dataset: Samples of the inputs, for full integer quantization.
      conversion_summary_dir: Not available: anything but None raises NotImplementedError.
      experimental_new_converter: Without effect: there is one converter.

    Args:
      graph_def: A GraphDef without variables.
      input_tensors: The tensors to feed, which also determine shapes and types.
      output_tensors: The tensors to fetch. Only their names are used.
      input_arrays_with_shape: Pairs of a name and a shape, instead of `input_tensors`.
      output_arrays: Names, instead of `output_tensors`.

    Raises:
      ValueError: Neither tensors nor arrays are given, or the graph lacks some of the names.
    """

    def __init__(
        self,
        graph_def: Any,
        input_tensors: Any,
        output_tensors: Any,
        input_arrays_with_shape: Any = None,
        output_arrays: Any = None,
    ) -> None:
        self._graph_def = graph_def
        self._source: Source | None = None
        if input_tensors is None or output_tensors is None:
            if not input_arrays_with_shape or not output_arrays:
                raise ValueError(
                    "If input_tensors and output_tensors are None, both input_arrays_with_shape and output_arrays must be defined."
                )
            self._input_names = [name for name, _ in input_arrays_with_shape]
            shapes: Any = dict(input_arrays_with_shape)
            self._output_names = list(output_arrays)
        else:
            self._input_names = [sources.array_name(each) for each in input_tensors]
            shapes = {sources.array_name(each): each.shape for each in input_tensors}
            self._output_names = [each.name.removesuffix(":0") for each in output_tensors]
        super().__init__(lambda: [self._from_graph_def(shapes)])
        self.inference_type = dtypes.float32
        self.output_format = TFLITE
        self.quantized_input_stats: Any = {}
        self.default_ranges_stats: Any = None
        self.drop_control_dependency = True
        self.reorder_across_fake_quant = False
        self.change_concat_input_ranges = False
        self.dump_graphviz_dir: str | None = None
        self.dump_graphviz_video = False
        self.conversion_summary_dir: str | None = None
        self.experimental_new_converter = True

    def _from_graph_def(self, shapes: dict[str, Any]) -> Source:
        return sources.from_graph_def(self._graph_def, self._input_names, self._output_names, shapes)

    @classmethod
    def _from_source(cls, source: Source) -> TFLiteConverter:
        made = cls(None, [], [])
        made._source = source
        made._input_names, made._output_names = source.input_names, source.output_names
        made._make_sources = lambda: [source]
        return made

    @classmethod
    def from_session(cls, sess: Any, input_tensors: Any, output_tensors: Any) -> TFLiteConverter:
        """Returns a converter for the graph of a session. Variables are frozen with their current values.

        Args:
          sess: The session.
          input_tensors: The tensors to feed.
          output_tensors: The tensors to fetch.

        Raises:
          ValueError: There are no outputs, or something is no list of tensors.
        """
        if not hasattr(sess, "graph"):
            raise ValueError(f"sess is a tf.Session, found {type(sess).__name__}.")
        for name, tensors in (("input_tensors", input_tensors), ("output_tensors", output_tensors)):
            if not isinstance(tensors, (list, tuple)):
                raise ValueError(f"{name} is a list of tensors, found {type(tensors).__name__}.")
        if not output_tensors:
            raise ValueError("output_tensors is empty: a model without outputs computes nothing.")
        return cls._from_source(sources.from_session(sess, input_tensors, output_tensors))

    @classmethod
    def from_frozen_graph(
        cls, graph_def_file: Any, input_arrays: Sequence[str], output_arrays: Sequence[str], input_shapes: Any = None
    ) -> TFLiteConverter:
        """Returns a converter for a file with a frozen GraphDef.

        Args:
          graph_def_file: Path of the file, binary or text.
          input_arrays: Names of the tensors to feed.
          output_arrays: Names of the tensors to fetch.
          input_shapes: Shapes by name, for inputs with unknown sizes. None leaves an input unchanged.

        Raises:
          IOError: The file does not exist or cannot be parsed.
          ValueError: The graph has variables, tables without entries, or lacks the tensors, or a shape contradicts the graph.
        """
        graph_def = sources.read_graph_def(graph_def_file)
        if not sources.is_frozen(graph_def):
            raise ValueError("Please freeze the graph using freeze_graph.py.")
        return cls._from_source(sources.from_graph_def(graph_def, input_arrays, output_arrays, input_shapes))

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: Any,
        input_arrays: Any = None,
        input_shapes: Any = None,
        output_arrays: Any = None,
        tag_set: Any = None,
        signature_key: str | None = None,
    ) -> TFLiteConverter:
        """Returns a converter for one signature of a SavedModel.

        Args:
          saved_model_dir: The directory.
          input_arrays: Names of the tensors to feed. The default is the inputs of the signature.
          input_shapes: Shapes by name, for inputs whose own is not complete.
          output_arrays: Names of the tensors to fetch. The default is the outputs of the signature.
          tag_set: Tags of the meta graph. The default is {"serve"}.
          signature_key: The signature. The default is "serving_default".

        Raises:
          IOError: The SavedModel does not exist.
          ValueError: There is no such signature, or no such tensor.
        """
        tags = {constants.SERVING} if tag_set is None else set(tag_set)
        key = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY if signature_key is None else signature_key
        (source,) = sources.from_saved_model(saved_model_dir, tags, [key], input_arrays, output_arrays)
        sources.set_shapes(source, input_shapes)
        return cls._from_source(source)

    @classmethod
    def from_keras_model_file(
        cls,
        model_file: Any,
        input_arrays: Any = None,
        input_shapes: Any = None,
        output_arrays: Any = None,
        custom_objects: Any = None,
    ) -> TFLiteConverter:
        """Returns a converter for a file with a Keras model: HDF5, or a `.keras` archive. Reading them needs h5py.

        Args:
          model_file: Path of the file.
          input_arrays: Names of the tensors to feed. The default is the model's inputs.
          input_shapes: Shapes by name, for inputs whose own is not complete.
          output_arrays: Names of the tensors to fetch. The default is the model's outputs.
          custom_objects: Activation functions and layer classes of the user, by the names that the model uses. Layers are created from their settings.

        Raises:
          IOError: The file does not exist or is not a Keras model.
          ValueError: Some layers cannot be converted (one message lists all of them), or a tensor does not exist.
          ImportError: h5py is not installed.
        """
        source = sources.from_keras(read_keras_model(model_file), custom_objects, input_arrays, output_arrays)
        sources.set_shapes(source, input_shapes)
        return cls._from_source(source)

    def get_input_arrays(self) -> list[str]:
        """The names of the input tensors."""
        return list(self._input_names)

    # -- deprecated spellings ------------------------------------------------------------------------------------

    @property
    def post_training_quantize(self) -> bool:
        """Deprecated: `optimizations = [tf.lite.Optimize.DEFAULT]`."""
        return Optimize.DEFAULT in set(self.optimizations)

    @post_training_quantize.setter
    def post_training_quantize(self, value: bool) -> None:
        tf_logging.warning(
            "Property post_training_quantize is deprecated, please use optimizations=[Optimize.DEFAULT] instead."
        )
        self.optimizations = [Optimize.DEFAULT] if value else []

    @property
    def target_ops(self) -> Any:
        """Deprecated: `target_spec.supported_ops`."""
        return self.target_spec.supported_ops

    @target_ops.setter
    def target_ops(self, value: Any) -> None:
        tf_logging.warning("Property target_ops is deprecated, please use target_spec.supported_ops instead.")
        self.target_spec.supported_ops = value

    # -- converting ----------------------------------------------------------------------------------------------

    def convert(self) -> bytes:
        """Returns the converted model, or its picture if `output_format` is `GRAPHVIZ_DOT`.

        Raises:
          ValueError: The shape of an input is incomplete, or settings contradict each other.
          ConverterError: The graph has nodes that cannot be converted.
        """
        if self.output_format not in (TFLITE, GRAPHVIZ_DOT):
            raise ValueError(
                f"output_format must be lite.constants.TFLITE or GRAPHVIZ_DOT, found {self.output_format!r}."
            )
        self._check_options()
        found = self._make_sources()
        for source in found:
            self._complete_shapes(source)
            self._check_controls(source)
        self._check_types(found[0])
        model = self._model(found, self._observer())
        if self.output_format == GRAPHVIZ_DOT:
            return pictures.dot(model).encode()
        return self._finished(model)

    @staticmethod
    def _complete_shapes(source: Source) -> None:
        """Only the first size of an input, the batch, may be unknown. It becomes 1."""
        for tensor, name in zip(source.inputs, source.input_names, strict=True):
            shape = source.shapes.get(tensor)
            if shape is None:
                static = tensor.static_shape
                if static.dims is None:
                    raise ValueError(f"Provide an input shape for input array '{name}'.")
                shape = tuple(-1 if size is None else size for size in static.dims)
            if -1 in shape[1:]:
                written = [None if size < 0 else size for size in shape]
                raise ValueError(
                    f"None is only supported in the 1st dimension. Tensor '{name}' has invalid shape '{written}'."
                )
            source.shapes[tensor] = tuple(1 if size < 0 else size for size in shape)

    def _check_controls(self, source: Source) -> None:
        if self.drop_control_dependency:
            return
        ops = sources.needed_ops(source.outputs, (), dict.fromkeys(source.inputs))
        waiting = [op.name for op in ops if op.control_inputs]
        if waiting:
            raise ConverterError(
                f"TFLite has no control dependencies, and {len(waiting)} nodes have some ({', '.join(waiting[:5])}): set "
                "drop_control_dependency = True to leave them out."
            )

    def _check_types(self, source: Source) -> None:
        quantized = (dtypes.uint8, dtypes.int8)
        if self.inference_type not in (dtypes.float32, *quantized):
            raise ValueError(f"inference_type must be tf.float32 or tf.uint8, found {self.inference_type!r}.")
        if self.inference_input_type not in (None, dtypes.float32, *quantized):
            raise ValueError(
                f"inference_input_type must be tf.float32, tf.uint8 or tf.int8, found {self.inference_input_type!r}."
            )
        integers = self.inference_type in quantized or self.inference_input_type in quantized
        if integers and not self.optimizations:
            if not self.quantized_input_stats:
                raise ValueError(
                    "The `quantized_input_stats` flag must be defined when either `inference_type` flag or `inference_input_type` "
                    "flag is set to tf.int8 or tf.uint8: std_dev and mean must be defined for every input."
                )
            missing = [name for name in source.input_names if name not in self.quantized_input_stats]
            if missing:
                raise ValueError(f"Quantization input stats are not available for input tensors '{','.join(missing)}'.")
        output = self.inference_output_type
        if output not in (None, dtypes.float32) and self.inference_type not in quantized and not self.optimizations:
            raise ValueError(
                f"inference_output_type must be tf.float32 unless inference_type is tf.uint8, found {output!r}."
            )

    def _numbers(self) -> Request:
        numbers = super()._numbers()
        if not numbers.optimize:
            numbers.inference_type = self.inference_type
            numbers.input_stats = dict(self.quantized_input_stats or {})
            numbers.default_ranges = self.default_ranges_stats
        numbers.join_concatenations = bool(self.change_concat_input_ranges)
        return numbers

    def _rules(self) -> Rules:
        rules = super()._rules()
        rules.reorder_fake_quant = bool(self.reorder_across_fake_quant)
        return rules

    def _observer(self) -> Callable[[str, Model], None] | None:
        folder = self.dump_graphviz_dir
        if folder is None:
            return None
        gfile.makedirs(folder)
        steps: list[str] = []

        def observe(step: str, model: Model) -> None:
            picture = pictures.dot(model)
            names = [_AT_IMPORT] if not steps else [_AFTER]
            if self.dump_graphviz_video:
                names.append(f"toco_{len(steps):03d}_{step}.dot")
            steps.append(step)
            for name in names:
                with gfile.GFile(os.path.join(folder, name), "w") as file:
                    file.write(picture)

        return observe


def traced(model: Any) -> ConcreteFunction:
    """A callable as a concrete function.

    Raises:
      ValueError: Its inputs are not specified.
    """
    if isinstance(model, ConcreteFunction):
        return model
    if hasattr(model, "get_concrete_function") and getattr(model, "input_signature", None) is not None:
        return model.get_concrete_function()
    if not callable(model):
        raise ValueError(f"A model to convert is a Keras model or a callable with inputs, not {type(model).__name__}.")
    call = getattr(model, "call", model)
    if hasattr(call, "get_concrete_function") and getattr(call, "input_signature", None) is not None:
        return call.get_concrete_function()
    given = getattr(model, "inputs", None)
    if given is None and getattr(model, "input_shape", None) is not None:
        given = TensorSpec(model.input_shape, getattr(model, "dtype", None) or dtypes.float32)
    if given is None:
        raise ValueError(
            f"The model of type {type(model).__name__} does not say what its inputs are: give it an attribute `inputs` with a TensorSpec for "
            "each, or pass a tf.function with an input_signature."
        )
    specs = [
        TensorSpec(each.shape, each.dtype, name=_plain_name(getattr(each, "name", None)))
        for each in (given if isinstance(given, (list, tuple)) else [given])
    ]
    # A model with one input takes the tensor itself. A model with several inputs and a `call` method takes a list of them, like Keras models.
    if len(specs) > 1 and hasattr(model, "call"):
        return function(lambda *arguments: model(list(arguments)), input_signature=specs).get_concrete_function()
    return function(lambda *arguments: model(*arguments), input_signature=specs).get_concrete_function()


def _plain_name(name: Any) -> str | None:
    return None if not name else str(name).partition(":")[0]


@export(v2="lite.TFLiteConverter")
class TFLiteConverterV2(_Converter):
    """Converts functions or a SavedModel to a TFLite model.

        converter = tf.lite.TFLiteConverter.from_saved_model("export")
        open("model.tflite", "wb").write(converter.convert())

    Unknown sizes stay unknown. Callers set them with `resize_tensor_input` or by calling a signature.

    Attributes:
      optimizations: Optimizations to apply, such as `[tf.lite.Optimize.DEFAULT]`.
      representative_dataset: Samples of the inputs, for full integer quantization.
      target_spec: The capabilities of the target.
      inference_input_type, inference_output_type: Types of the inputs and outputs: float32, or int8 and uint8 with full integer quantization.
      allow_custom_ops: Whether ops without a builtin become custom ops, which the runtime must be given kernels for.
      exclude_conversion_metadata: Whether the file says nothing about the conversion, which it does not in any case.
      experimental_enable_resource_variables: Whether the model may keep variables between calls.
      experimental_new_converter, experimental_new_quantizer: Without effect: there is one of each.

    Args:
      funcs: Concrete functions.
      trackable_obj: The object that owns their variables.
    """

    def __init__(self, funcs: Any, trackable_obj: Any = None) -> None:
        del trackable_obj  # variables are found through the functions that use them
        functions = list(funcs)
        for each in functions:
            if not isinstance(each, ConcreteFunction):
                hint = " Call get_concrete_function on it." if hasattr(each, "get_concrete_function") else ""
                raise ValueError(
                    f"This function takes in a list of concrete functions, found {type(each).__name__}.{hint}"
                )
        super().__init__(lambda: sources.from_concrete_functions(functions))
        self.inference_input_type = self.inference_output_type = dtypes.float32
        self.exclude_conversion_metadata = False
        self.experimental_new_converter = True
        self.experimental_new_quantizer = True
        self.experimental_enable_resource_variables = True

    @classmethod
    def from_concrete_functions(cls, funcs: Any, trackable_obj: Any = None) -> TFLiteConverterV2:
        """Returns a converter for concrete functions.

        Args:
          funcs: Concrete functions, one for each signature.
          trackable_obj: The object that owns their variables.

        Raises:
          ValueError: `funcs` is empty or contains something else.
        """
        functions = list(funcs) if isinstance(funcs, (list, tuple)) else [funcs]
        if not functions:
            raise ValueError("No ConcreteFunction is specified.")
        return cls(functions, trackable_obj)

    @classmethod
    def from_saved_model(cls, saved_model_dir: Any, signature_keys: Any = None, tags: Any = None) -> TFLiteConverterV2:
        """Returns a converter for a SavedModel.

        Args:
          saved_model_dir: The directory.
          signature_keys: The signatures. The default is all of them, and "serving_default" for a model that Keras exported.
          tags: Tags of the meta graph. They are optional if there is only one.

        Raises:
          IOError: The SavedModel does not exist.
          ValueError: There is no such signature.
        """
        if isinstance(signature_keys, str):
            raise ValueError(f"signature_keys is a list of keys, found {signature_keys!r}.")
        made = cls([])
        found = sources.from_saved_model(saved_model_dir, tags, signature_keys or None)
        made._make_sources = lambda: found
        return made

    @classmethod
    def from_keras_model(cls, model: Any) -> TFLiteConverterV2:
        """Returns a converter for a model object.

        Args:
          model: A Sequential or functional model of the `keras` package, of any backend; a concrete function; a `tf.function` with an
            input signature; or a callable, such as a `tf.Module`, with an attribute `inputs` of tensors or `TensorSpec`s.

        Raises:
          ValueError: The inputs of the model are not specified, it does not say how its layers are connected, or some of them
            cannot be converted.
        """
        described = sources.described_model(model)
        if described is not None:
            source = sources.from_keras(*described, signature=True)
            made = cls([])
            made._make_sources = lambda: [source]
            return made
        return cls([traced(model)], model)

    def convert(self) -> bytes:
        """The converted model.

        Raises:
          ValueError: Settings contradict each other.
          ConverterError: The functions have nodes that cannot be converted.
        """
        self._check_options()
        found = self._make_sources()
        if not found:
            raise ValueError("No ConcreteFunction is specified.")
        model = self._model(found)
        if not self.experimental_enable_resource_variables:
            assigned = [each.outputs[0].name for each in model.operators() if each.code == "VAR_HANDLE"]
            if assigned:
                raise ConverterError(
                    f"The model assigns to variables ({', '.join(sorted(set(assigned)))}), and experimental_enable_resource_variables is False."
                )
        return self._finished(model)
