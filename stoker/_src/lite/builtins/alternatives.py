"""Alternatives to ops without a TFLite builtin, for the error message that lists such ops."""

from __future__ import annotations

from stoker._src.lite.lowering import ALTERNATIVES

_TEXTS = {
    "Erf Erfc Erfinv": "tf.tanh(1.128379 * x) is close to erf; tf.nn.gelu as a whole has a builtin",
    "Lgamma Digamma Igamma Igammac Polygamma Zeta Betainc": "tabulate the function with tf.gather, or compute it before the model",
    "Cumprod": "tf.exp(tf.cumsum(tf.math.log(x))) for positive values",
    "BitwiseAnd BitwiseOr Invert LeftShift": "tf.bitwise.bitwise_xor and right_shift have builtins",
    "ResizeBicubic ResizeArea ScaleAndTranslate": "tf.image.resize_bilinear or tf.image.resize_nearest_neighbor",
    "CropAndResize": "slice each box and use tf.image.resize_bilinear",
    "CombinedNonMaxSuppression": "tf.image.non_max_suppression_padded for each class",
    "DecodeJpeg DecodePng DecodeImage DecodeBmp DecodeGif DecodeRaw DecodeWav": "decode the file before the model and feed the values",
    "ParseExample ParseExampleV2 ParseSingleExample DecodeCSV": "parse the records before the model and feed the values",
    "QueueDequeueV2 QueueDequeueManyV2 QueueDequeueUpToV2 IteratorGetNext ReaderReadV2": "make the tensor an input of the model",
    "SparseTensorDenseMatMul SparseMatMul": "a dense tf.matmul, or tf.gather and a sum",
    "SegmentMax SegmentMin SegmentProd": "tf.math.segment_sum, or the unsorted reductions, which have builtins",
    "Dilation2D Erosion2D": "tf.nn.max_pool for a flat structuring element",
    "ExtractImagePatches": "tf.nn.conv2d with a filter of ones and zeros, or tf.space_to_depth",
    "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D RFFT3D": "tf.signal.rfft and rfft2d have a builtin",
    "MatrixInverse MatrixDeterminant Cholesky Qr Svd SelfAdjointEigV2 MatrixSolve MatrixTriangularSolve": (
        "solve it before the model and feed the result, or write the formula out for small matrices"
    ),
    "TruncatedNormal RandomGamma RandomPoissonV2 RandomShuffle": "tf.random.uniform and tf.random.normal have builtins",
    "StringSplit StringSplitV2 RegexReplace StringToNumber AsString StringJoin Substr StringLength": "process strings before the model",
    "StringToHashBucketFast StringToHashBucket StringToHashBucketStrong": "hash the strings before the model and feed the ids",
    "UniqueWithCounts UniqueV2": "tf.unique has a builtin",
    "PyFunc PyFuncStateless EagerPyFunc": "write the function with TensorFlow ops",
    "Assign AssignAdd AssignSub ScatterUpdate ScatterAdd": "convert the graph for inference; for a model with state, use resource variables and a tf.function",
    "InTopK InTopKV2": "compare with the values of tf.nn.top_k",
    "Bincount DenseBincount": "a sum of tf.one_hot",
    "DynamicPartition": "tf.boolean_mask for each part",
    "Cross": "products of the elements, which tf.unstack and tf.stack take apart and join",
    "Complex Angle Conj": "the real and the imaginary part as two tensors; tf.atan2 is the angle",
    "RGBToHSV HSVToRGB AdjustHue AdjustSaturation": "convert the picture before the model",
    "MaxPoolWithArgmax": "tf.nn.max_pool, or tf.argmax over reshaped windows",
    "CTCGreedyDecoder CTCBeamSearchDecoder CTCLoss": "tf.argmax over the classes, and merge repeated labels behind the model",
    "HistogramFixedWidth": "tf.raw_ops.Bucketize, then a sum of tf.one_hot",
    "TensorScatterMin TensorScatterMax ScatterNdUpdate": "tf.tensor_scatter_nd_update, or the unsorted segment reductions",
    "ListDiff": "tf.equal with each of the numbers, then tf.boolean_mask",
    "DiagPart": "tf.linalg.diag_part for matrices",
    "SearchSorted LowerBound UpperBound": "tf.raw_ops.Bucketize for constant boundaries",
}
for _names, _text in _TEXTS.items():
    ALTERNATIVES.update(dict.fromkeys(_names.split(), _text))
