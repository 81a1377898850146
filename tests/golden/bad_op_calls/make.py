"""Bad calls of ops and public functions, and what TensorFlow raises for them: {call: {mode: [phase, class]}}.

    python tests/golden/bad_op_calls/make.py    # under an interpreter that has TensorFlow 2.21 and tf_keras

The calls are classes of mistakes, one or two ops for each; the test runs them through stoker.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

F, I, L = np.float32, np.int32, np.int64
ROWS = np.arange(6, dtype=F).reshape(3, 2)
PLACES, COUNTS, SIZES = np.array([[0, 0], [1, 1]], L), np.array([1, 2], F), np.array([2, 2], L)
BESIDE = np.array([[0, 0], [5, -1]], L)  # outside of SIZES

# op, inputs, attributes
OPS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # ranks that shape function and kernel see differently
    ("Range", {"start": I([0]), "limit": I(3), "delta": I(1)}, {}),
    ("Range", {"start": I([[0]]), "limit": I(3), "delta": I(1)}, {}),
    ("OneHot", {"indices": I([0]), "depth": I(3), "on_value": F([1]), "off_value": F(0)}, {}),
    ("PadV2", {"input": ROWS, "paddings": I([[0, 1], [0, 1]]), "constant_values": F([1])}, {}),
    ("NthElement", {"input": ROWS, "n": I([1])}, {}),
    ("NthElement", {"input": ROWS, "n": I(7)}, {}),
    ("RaggedTensorToSparse", {"rt_nested_splits": [L([[0, 3]])], "rt_dense_values": ROWS}, {}),
    ("Prod", {"input": ROWS, "axis": I([[0]])}, {}),
    ("Prod", {"input": F(1), "axis": I([1])}, {}),
    # vectors of a certain length
    ("StatelessRandomUniform", {"shape": I([2]), "seed": L([1, 2, 3])}, {}),
    ("StatelessRandomUniformV2", {"shape": I([2]), "key": np.uint64([1, 2]), "counter": np.uint64([1, 2]), "alg": I(1)}, {}),
    # updates at coordinates and rows
    ("TensorScatterAdd", {"tensor": ROWS, "indices": I([[0]]), "updates": np.zeros((2, 2), F)}, {}),
    ("TensorScatterUpdate", {"tensor": np.zeros((0, 2), F), "indices": I([[0]]), "updates": np.zeros((1, 2), F)}, {}),
    ("ScatterNd", {"indices": I([[0]]), "updates": np.zeros((3, 2), F), "shape": I([3, 2])}, {}),
    ("ScatterNd", {"indices": I([[0]]), "updates": np.zeros((1, 2), F), "shape": I([3, 2])}, {"bad_indices_policy": "bogus"}),
    # the parts of sparse tensors
    ("SparseAdd", {"a_indices": BESIDE, "a_values": COUNTS, "a_shape": SIZES, "b_indices": PLACES, "b_values": COUNTS, "b_shape": SIZES, "thresh": F(0)}, {}),
    ("SparseAdd", {"a_indices": PLACES, "a_values": COUNTS[:1], "a_shape": SIZES, "b_indices": PLACES, "b_values": COUNTS, "b_shape": SIZES, "thresh": F(0)}, {}),
    ("SparseSparseMaximum", {"a_indices": BESIDE, "a_values": COUNTS, "a_shape": SIZES, "b_indices": PLACES, "b_values": COUNTS, "b_shape": SIZES}, {}),
    ("SparseReorder", {"input_indices": BESIDE, "input_values": COUNTS, "input_shape": SIZES}, {}),
    ("SparseReorder", {"input_indices": PLACES, "input_values": COUNTS[:1], "input_shape": SIZES}, {}),
    ("SparseReduceSum", {"input_indices": BESIDE, "input_values": COUNTS, "input_shape": SIZES, "reduction_axes": I([1])}, {}),
    ("SparseReduceSum", {"input_indices": PLACES, "input_values": COUNTS[:1], "input_shape": SIZES, "reduction_axes": I([1])}, {}),
    ("SparseReshape", {"input_indices": BESIDE, "input_shape": SIZES, "new_shape": L([4])}, {}),
    ("SparseSlice", {"indices": BESIDE, "values": COUNTS, "shape": SIZES, "start": L([0, 0]), "size": L([1, 1])}, {}),
    ("SparseSoftmax", {"sp_indices": BESIDE, "sp_values": COUNTS, "sp_shape": SIZES}, {}),
    ("SparseFillEmptyRows", {"indices": PLACES, "values": COUNTS[:1], "dense_shape": SIZES, "default_value": F(0)}, {}),
    # segments
    ("SparseSegmentMeanGrad", {"grad": ROWS, "indices": I([0, 1]), "segment_ids": I([0, 2**31 - 1]), "output_dim0": I(4)}, {}),
    ("SparseSegmentMeanGrad", {"grad": ROWS, "indices": I([0, 1]), "segment_ids": I([0]), "output_dim0": I(4)}, {}),
    ("SparseSegmentSum", {"data": ROWS, "indices": I([0]), "segment_ids": I([2**31 - 1])}, {}),
    # bounds of quantized numbers
    ("QuantizeAndDequantizeV2", {"input": ROWS, "input_min": F([0]), "input_max": F([1])}, {"range_given": True}),
    ("QuantizeAndDequantizeV2", {"input": ROWS, "input_min": F(np.nan), "input_max": F(1)}, {"range_given": True}),
    ("QuantizeAndDequantizeV2", {"input": ROWS, "input_min": F(0), "input_max": F(1)}, {"axis": -7}),
    # ragged tensors
    ("RaggedRange", {"starts": I([0, 1]), "limits": I([1, 2, 3]), "deltas": I(1)}, {}),
    ("RaggedGather", {"params_nested_splits": [L([1, 1])], "params_dense_values": F([1, 2]), "indices": I([0])}, {"OUTPUT_RAGGED_RANK": 1}),
    ("RaggedTensorToTensor", {"shape": L([-7, 2]), "values": F([1, 2]), "default_value": F(0), "row_partition_tensors": [L([0, 2])]}, {"row_partition_types": ["ROW_SPLITS"]}),
    ("RaggedTensorToTensor", {"shape": L([-1, -1]), "values": F([1, 2]), "default_value": F([0]), "row_partition_tensors": [L([0, 2])]}, {"row_partition_types": ["ROW_SPLITS"]}),
    # strings
    ("ReduceJoin", {"inputs": np.array([[b"a"]], object), "reduction_indices": I([7])}, {}),
    ("ReduceJoin", {"inputs": np.zeros((2, 0), object), "reduction_indices": I([1])}, {}),
    ("StringNGrams", {"data": np.array([b"a"], object), "data_splits": L([0, 1])}, {"separator": "", "ngram_widths": [0], "left_pad": "", "right_pad": "", "pad_width": 0, "preserve_short_sequences": False}),
    # channels, windows and pools of nothing
    ("Conv3D", {"input": np.ones((1, 2, 2, 2, 0), F), "filter": np.ones((1, 1, 1, 2, 1), F)}, {"strides": [1] * 5, "padding": "SAME"}),
    ("Conv3DBackpropFilterV2", {"input": np.ones((1, 2, 2, 2, 2), F), "filter_sizes": I([1, 1, 1, 1, 1]), "out_backprop": np.ones((1, 2, 2, 2, 1), F)}, {"strides": [1] * 5, "padding": "SAME"}),
    ("ExtractImagePatches", {"images": np.ones((1, 0, 4, 1), F)}, {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 2, 2, 1], "padding": "VALID"}),
    ("FractionalAvgPool", {"value": np.ones((0, 4, 4, 1), F)}, {"pooling_ratio": [1.0, 1.5, 1.5, 1.0]}),
    ("Dilation2D", {"input": np.ones((1, 3, 3, 2), F), "filter": np.ones((0, 2, 2), F)}, {"strides": [1] * 4, "rates": [1] * 4, "padding": "SAME"}),
    # attributes and lengths that are found when a graph is built
    ("DecodeWav", {"contents": np.array(b"", object)}, {"desired_samples": 2**40}),
    ("Mfcc", {"spectrogram": np.ones((1, 2, 257), F), "sample_rate": I(16000)}, {"upper_frequency_limit": float("nan")}),
    ("FusedBatchNormV3", {"x": np.ones((1, 2, 2, 3), F), "scale": F([1, 1, 1]), "offset": F([0, 0, 0]), "mean": F([0]), "variance": F([1])}, {"exponential_avg_factor": 0.5}),
    ("DenseToSparseSetOperation", {"set1": L([[1, 2]]), "set2_indices": L([[0, 0]]), "set2_values": L([1, 2]), "set2_shape": L([1, 2])}, {"set_operation": "union"}),
    ("DeserializeSparse", {"serialized_sparse": np.array([b"a", b"b"], object)}, {"dtype": "float32"}),
    ("Fingerprint", {"data": F([1]), "method": np.array(b"md5", object)}, {}),
    ("EditDistance", {"hypothesis_indices": L([[5, 0]]), "hypothesis_values": L([1]), "hypothesis_shape": L([1, 1]), "truth_indices": L([[0, 0]]), "truth_values": L([1]), "truth_shape": L([1, 1])}, {}),
    ("EditDistance", {"hypothesis_indices": L([[0, 0, 0]]), "hypothesis_values": L([1]), "hypothesis_shape": L([1, 1]), "truth_indices": L([[0, 0]]), "truth_values": L([1]), "truth_shape": L([1, 1])}, {}),
    ("DynamicStitch", {"indices": [I([2**31 - 1])], "data": [F([1])]}, {}),
    ("MatrixDiagPartV3", {"input": ROWS, "k": I(0), "padding_value": F([1, 2])}, {}),
    # the rest
    ("TanhGrad", {"y": F([[1, 2]]), "dy": F([1, 2])}, {}),
    ("TanhGrad", {"y": F([1, 2]), "dy": F([1, 2, 3])}, {}),
    ("SoftmaxCrossEntropyWithLogits", {"features": F(1), "labels": ROWS}, {}),
    ("Squeeze", {"input": ROWS[:, :1]}, {"axis": [1, 1]}),
    ("SplitV", {"value": ROWS, "size_splits": I([1, 2]), "axis": I(0)}, {"num_split": 3}),
    ("Svd", {"input": np.full((2, 2), np.nan, F)}, {}),
    ("StridedSliceGrad", {"shape": I([4]), "begin": I([0]), "end": I([2]), "strides": I([1]), "dy": F(1)}, {}),
    ("TensorStridedSliceUpdate", {"input": ROWS, "begin": I([3]), "end": I([3]), "strides": I([1]), "value": F([1])}, {}),
    ("TopKV2", {"input": ROWS, "k": I(-1)}, {}),
    ("TridiagonalSolve", {"diagonals": np.ones((1, 3, 3), F), "rhs": ROWS}, {}),
    ("FractionalMaxPool", {"value": np.ones((1, 4, 4, 1), F)}, {"pooling_ratio": [1.0, 0.5, 1.5, 1.0]}),
    # axes, permutations and positions
    ("ReverseV2", {"tensor": F(1), "axis": I([5])}, {}),
    ("ReverseV2", {"tensor": ROWS, "axis": I([0, -2])}, {}),
    ("ReverseSequence", {"input": ROWS, "seq_lengths": I([1, 1])}, {"seq_dim": 1}),
    ("ReverseSequence", {"input": ROWS, "seq_lengths": I([1, 1, 1])}, {"seq_dim": 2}),
    ("Transpose", {"x": ROWS, "perm": I([0, 0])}, {}),
    ("Transpose", {"x": ROWS, "perm": I([5, 0])}, {}),
    ("Transpose", {"x": ROWS, "perm": I(0)}, {}),
    ("Tile", {"input": ROWS, "multiples": I(3)}, {}),
    ("Roll", {"input": ROWS, "shift": I([1]), "axis": I([0, 1])}, {}),
    ("UnravelIndex", {"indices": I([0]), "dims": I([-1, -1])}, {}),
    ("UnravelIndex", {"indices": I([0]), "dims": I([65536, 65536])}, {}),
    ("UnravelIndex", {"indices": I([]), "dims": I([2, 3])}, {}),
    ("UnravelIndex", {"indices": I([0]), "dims": I([])}, {}),
    ("UniqueV2", {"x": ROWS, "axis": L(0)}, {}),
    ("UniqueV2", {"x": ROWS, "axis": L([0, 1])}, {}),
    ("UniqueV2", {"x": np.array([[b"a"], [b"a"]], object), "axis": L([0])}, {}),
    ("TensorStridedSliceUpdate", {"input": ROWS, "begin": I([0]), "end": I([2]), "strides": I([1]), "value": F([1, 2])}, {}),
    ("TensorStridedSliceUpdate", {"input": ROWS, "begin": I(0), "end": I([2]), "strides": I([1]), "value": F([1, 2])}, {}),
    ("UnsortedSegmentSum", {"data": ROWS, "segment_ids": I([0, 1, 2]), "num_segments": I(-1)}, {}),
    ("UnsortedSegmentJoin", {"inputs": np.array([b"a"], object), "segment_ids": I(0), "num_segments": I(1)}, {}),
    ("UnsortedSegmentJoin", {"inputs": np.array([b"a"], object), "segment_ids": I([[0]]), "num_segments": I(1)}, {}),
    ("SparseFillEmptyRows", {"indices": np.array([[0]], L), "values": F([1]), "dense_shape": SIZES, "default_value": F(0)}, {}),
    ("SparseReduceSum", {"input_indices": PLACES, "input_values": COUNTS, "input_shape": L([-7, 2]), "reduction_axes": I([1])}, {}),
    ("SparseCrossV2", {"indices": [], "values": [], "shapes": [], "dense_inputs": [L([1])], "sep": np.array(b"_", object)}, {}),
    ("SobolSample", {"dim": I(0), "num_results": I(2), "skip": I(0)}, {}),
    ("StringFormat", {"inputs": [F(1)]}, {"template": "none"}),
    ("RaggedCross", {"ragged_values": [L([1, 2])], "ragged_row_splits": [L([0, 1])], "sparse_indices": [], "sparse_values": [], "sparse_shape": [], "dense_inputs": []}, {"input_order": "R", "hashed_output": False, "num_buckets": 0, "hash_key": 0, "out_values_type": "string", "out_row_splits_type": "int64"}),
    ("QuantizeAndDequantizeV3", {"input": F(1), "input_min": F(0), "input_max": F(1), "num_bits": I(8)}, {}),
    ("SparseConcat", {"indices": [PLACES], "values": [COUNTS, COUNTS], "shapes": [SIZES]}, {"concat_dim": 0}),
]  # fmt: skip

# Public functions of 1.x in a graph: `z` and `i` make tensors of zeros, float32 and int64.
FUNCTIONS = [
    "tf.metrics.recall_at_k(i(2, 1), z(3, 4), k=1)",
    "tf.metrics.recall_at_k(z(2, 1), z(2, 4), k=1)",
    "tf.metrics.recall_at_k(i(2, 1), z(4), k=1)",
    "tf.metrics.recall_at_k(i(2, 1), z(2, 4), k=1, class_id='a')",
    "tf.metrics.precision_at_top_k(i(2, 1), i(3, 4), k=1)",
    "tf.metrics.average_precision_at_k(i(2, 1), z(2, 4), k=0)",
    "tf.metrics.recall_at_thresholds(z(2), z(2), [[0.5]])",
    "tf.layers.dropout(z(2, 3), rate=2.0)",
    "tf.layers.dropout(z(2, 3), rate='a', training=True)",
    "tf.layers.Dense(3).get_losses_for(None)",
    "tf.layers.Dense(3).get_updates_for(None)",
    "tf.layers.Dense(3).add_loss('a')",
    "tf.nn.rnn_cell.GRUCell(3)(i(2, 3), z(2, 3))",
    "tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(3), input_keep_prob='a')",
    "tf.nn.embedding_lookup(z(4, 3), i(2), partition_strategy='bogus')",
    "tf.nn.top_k(z(2, 3), -1)",
    "tf.nn.convolution(z(1, 4, 2), z(2, 2, 3), 'SAME', data_format='bogus')",
    "tf.nn.convolution(z(1, 4, 4, 2), z(2, 2, 2, 3), 'SAME', strides=1.5)",
    "tf.nn.depthwise_conv2d(z(1, 4, 4, 1), z(2, 2, 1, 1), None, 'SAME')",
    "tf.confusion_matrix(tf.zeros([1, 2], tf.int64), i(2), 3)",
    "tf.confusion_matrix(i(2, 1), i(2), 3)",
    "tf.linspace(0.0, 1.0, 5, axis=3)",
    "tf.signal.linear_to_mel_weight_matrix(sample_rate=-1)",
    "tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0)",
    "tf.signal.irfft(tf.zeros([], tf.complex64))",
    "tf.signal.inverse_mdct(z())",
    "tf.matrix_solve_ls(z(), z(2, 2))",
    "tf.linalg.lu_solve(z(3, 3), i(3), z(4, 1))",
    "tf.eye(2.5)",
    "tf.strings.join('text')",
    "tf.dynamic_stitch({1}, [z(1)])",
    "tf.cast(1, z())",
    "tf.convert_to_tensor(1, dtype_hint='text')",
    "tf.ragged.boolean_mask(z(3), [True, False])",
    "tf.layers.dropout(z(2, 3), training='text')",
    "tf.nn.ctc_loss_v2(i(3, 2), z(4, 2, 4), i(2), i(2))",
    "tf.losses.mean_squared_error(z(2, 3), z(3, 2))",
    "tf.losses.sparse_softmax_cross_entropy(i(3), z(2, 3))",
    "tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), z(2, 4, 3), dtype=tf.float32, sequence_length=i(3))",
    "tf.zeros([2], dtype=z(2))",
    "tf.searchsorted(z(4), z())",
    "tf.linalg.tridiagonal_matmul(z(3, 4), z())",
    "tf.parallel_stack(z(3))",
    "tf.ragged.stack([])",
    "tf.required_space_to_batch_paddings([4, 4], [2, 2], 0)",
    "tf.reverse_sequence(z(2, 3), i(2), 1, z(0))",
    "tf.sparse.reduce_max(tf.SparseTensor([[0]], [1.0], [2]), 0, keepdims=3)",
    "tf.string_join(z(3))",
    "tf.reduce_all(z(3))",
    "tf.repeat(z(3), [1, 2, 3], axis=5)",
    "tf.repeat(z(3), z(3), axis=0)",
    "tf.saturate_cast(tf.constant([True]), tf.uint8)",
    "tf.metrics.root_mean_squared_error(i(2), z(2))",
    "tf.losses.sparse_softmax_cross_entropy(i(2), z())",
    "tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], maximum_iterations=z(2, 3))",
    "tf.nn.with_space_to_batch(z(1), [1, 1], 'VALID', lambda x, *_: x)",
    "tf.ragged.stack_dynamic_partitions(z(3), [0, 0], 2)",
    "tf.quantization.quantize_v2(z(2), z(2), z(2), tf.quint8)",
]

# Lists, arrays, stacks, tables and staging areas in eager mode.
HANDLES = [
    "raw.StackPushV2(handle=raw.StackV2(max_size=2, elem_type=tf.float32), elem=1)",
    "raw.StackPushV2(handle=raw.StackV2(max_size=0, elem_type=tf.float32), elem=1.0)",
    "raw.StackV2(max_size=[1], elem_type=tf.float32)",
    "raw.EmptyTensorList(element_shape=[-7], max_num_elements=3, element_dtype=tf.float32)",
    "raw.TensorListPushBack(input_handle=raw.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32), tensor=[1, 2])",
    "raw.TensorListPushBack(input_handle=raw.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32), tensor=[1.0])",
    "raw.TensorListStack(input_handle=raw.TensorListFromTensor(tensor=[[1, 2]], element_shape=[2]), element_shape=[2], element_dtype=tf.float32)",
    "raw.TensorListFromTensor(tensor=[[1, 2]], element_shape=[3])",
    "raw.TensorListScatterV2(tensor=[[1, 2]], indices=[0], element_shape=[3], num_elements=1)",
    "raw.TensorListScatterV2(tensor=[[1, 2]], indices=[0], element_shape=[2], num_elements=-7)",
    "raw.TensorListSplit(tensor=[[1, 2]], element_shape=[-1, 3], lengths=[1])",
    "raw.TensorArrayWriteV3(handle=raw.TensorArrayV3(size=1, dtype=tf.float32)[0], index=0, value=1, flow_in=0.0)",
    "raw.TensorArrayScatterV3(handle=raw.TensorArrayV3(size=3, dtype=tf.float32)[0], indices=[0, 1, 2], value=[1.0, 2.0], flow_in=0.0)",
    "raw.TensorArrayGradWithShape(handle=raw.TensorArrayV3(size=3, dtype=tf.float32)[0], flow_in=0.0, shape_to_prepend=[-1], source='s')",
    "raw.InitializeTableFromTextFileV2(table_handle=raw.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64), filename='', key_index=0, value_index=1)",
    "raw.LookupTableFindV2(table_handle=raw.AnonymousMutableHashTable(key_dtype=tf.string, value_dtype=tf.int64), keys=['a', 'b'], default_value=tf.constant([1], tf.int64))",
    "raw.TextLineReaderV2(skip_header_lines=-1)",
    "raw.MapPeek(key=1, indices=[], dtypes=[tf.float32], shared_name='nothing')",
    "raw.MapStage(key=1, indices=[0], values=[1.0], dtypes=[tf.float32], memory_limit=1, shared_name='small')",
]


def outcomes(module: Any) -> dict[str, Any]:
    """What `module` (TensorFlow 2.x, or stoker) does with every call; a class is "" where there is a value."""
    found: dict[str, Any] = {}
    for number, (op, inputs, attrs) in enumerate(OPS):
        found[f"{number} {op}"] = {
            mode: _op(module, op, inputs, attrs, mode) for mode in ("eager", "static", "unknown")
        }
    for text in FUNCTIONS:
        found[text] = _function(module, text)
    for text in HANDLES:
        found[text] = _eagerly(module, text)
    return found


def _op(module: Any, op: str, inputs: dict[str, Any], attrs: dict[str, Any], mode: str) -> list[str]:
    v1, phase = module.compat.v1, "build"
    feeds: dict[Any, Any] = {}

    def tensor(value: Any) -> Any:
        if isinstance(value, list):
            return [tensor(each) for each in value]
        value = np.asarray(value)
        dtype = module.string if value.dtype == object else module.as_dtype(value.dtype)
        if mode != "unknown":
            return module.constant(value, dtype)
        made = v1.placeholder(dtype, None)
        feeds[made] = value
        return made

    def call() -> Any:
        return getattr(module.raw_ops, op)(**{name: tensor(value) for name, value in inputs.items()}, **attrs)

    try:
        if mode == "eager":
            phase = "run"
            call()
        else:
            with module.Graph().as_default(), v1.Session() as session:
                result = call()
                phase = "run"
                session.run(result, feeds)
    except Exception as error:
        return [phase, type(error).__name__]
    return [phase, ""]


def _function(module: Any, text: str) -> str:
    tf = module.compat.v1
    names = {"tf": tf, "z": lambda *shape: tf.zeros(shape), "i": lambda *shape: tf.zeros(shape, tf.int64)}
    with tf.Graph().as_default():
        try:
            eval(text, names)
        except Exception as error:
            return type(error).__name__
    return ""


def _eagerly(module: Any, text: str) -> str:
    try:
        eval(text, {"tf": module, "raw": module.raw_ops})
    except Exception as error:
        return type(error).__name__
    return ""


def main() -> None:
    import tensorflow

    results = outcomes(tensorflow)
    Path(__file__).with_name("tensorflow.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results)} calls", file=sys.stderr)


if __name__ == "__main__":
    main()
