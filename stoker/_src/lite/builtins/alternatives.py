"""Alternatives to ops without a TFLite builtin, for the error message that lists such ops."""

from __future__ import annotations

import re

from stoker._src.lite.lowering import ALTERNATIVE_FAMILIES, ALTERNATIVES

_TEXTS = {
    "Erf Erfc Erfinv": "tf.tanh(1.128379 * x) is close to erf; tf.nn.gelu as a whole has a builtin",
    "Lgamma Digamma Igamma Igammac Polygamma Zeta Betainc": "tabulate the function with tf.gather, or compute it before the model",
    "Cumprod": "tf.exp(tf.cumsum(tf.math.log(x))) for positive values",
    "BitwiseAnd BitwiseOr Invert LeftShift": "tf.bitwise.bitwise_xor and right_shift have builtins",
    "ResizeBicubic ResizeArea ScaleAndTranslate": "tf.image.resize_bilinear or tf.image.resize_nearest_neighbor",
    "CropAndResize": "slice each box and use tf.image.resize_bilinear",
    "CombinedNonMaxSuppression": "tf.image.non_max_suppression_padded for each class",
    "DecodeJpeg DecodeAndCropJpeg DecodePng DecodeImage DecodeBmp DecodeGif DecodeRaw DecodePaddedRaw DecodeWav ReadFile": "decode the file before the model and feed the values",
    "ParseExample ParseExampleV2 ParseSingleExample ParseSequenceExample ParseSequenceExampleV2 ParseSingleSequenceExample ParseTensor DecodeCSV "
    "DecodeJSONExample DecodeProtoV2": "parse the records before the model and feed the values",
    "SparseTensorDenseMatMul SparseMatMul": "a dense tf.matmul, or tf.gather and a sum",
    "SegmentMax SegmentMin SegmentProd SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2": "tf.math.segment_sum, or the unsorted reductions, which have builtins",
    "Dilation2D Erosion2D": "tf.nn.max_pool for a flat structuring element",
    "ExtractImagePatches": "tf.nn.conv2d with a filter of ones and zeros, or tf.space_to_depth",
    "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D RFFT3D": "tf.signal.rfft and rfft2d have a builtin",
    "StringToHashBucketFast StringToHashBucket StringToHashBucketStrong": "hash the strings before the model and feed the ids",
    "UniqueWithCounts UniqueWithCountsV2 UniqueV2": "tf.unique has a builtin",
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
    "LSTMBlockCell BlockLSTM BlockLSTMV2 GRUBlockCell": (
        "tf.nn.rnn_cell.LSTMCell or GRUCell in tf.nn.dynamic_rnn; tf.lite.experimental.nn.TFLiteLSTMCell has a builtin"
    ),
    "CumulativeLogsumexp": "tf.math.log(tf.cumsum(tf.exp(x)))",
    "NthElement ApproxTopK": "tf.nn.top_k",
    "UnravelIndex": "tf.math.floordiv and tf.math.floormod by the sizes of the dimensions",
    "ApproximateEqual": "tf.abs(x - y) < tolerance",
    "ConjugateTranspose": "tf.transpose of the real and of the imaginary part",
    "SpaceToBatch BatchToSpace": "tf.space_to_batch_nd and tf.batch_to_space_nd",
    "BatchNormWithGlobalNormalization": "tf.nn.batch_normalization",
    "FractionalAvgPool FractionalMaxPool": "tf.nn.avg_pool or tf.nn.max_pool",
    "ExtractGlimpse ExtractGlimpseV2": "tf.slice, and tf.image.resize_bilinear",
    "ExtractVolumePatches": "tf.nn.conv3d with a filter of ones and zeros",
    "NonMaxSuppressionWithOverlaps": "tf.image.non_max_suppression",
    "GatherTree EditDistance": "compute it behind the model",
    "DrawBoundingBoxes DrawBoundingBoxesV2": "draw them behind the model",
    "ImageProjectiveTransformV2 RandomCrop": "transform the picture before the model",
    "SearchSorted LowerBound UpperBound": "tf.raw_ops.Bucketize for constant boundaries",
}
# By patterns of names, for the ops that have no text of their own.
_FAMILIES = {
    r"\w*Grad([A-Z]\w*)?|(Resource|Sparse|ResourceSparse)?Apply\w+|\w+BackpropFilter\w*|(Uniform|Log\w*|Learned\w*|Fixed\w*|All)CandidateSampler": (
        "convert the graph for inference, which has no gradients, updates and sampled losses"
    ),
    r"(Queue|Reader|Iterator|Optional|Stage|Unstage|Map|OrderedMap|Barrier)\w+|\w+(Dataset|Queue|Reader|Iterator)(V\d)?": (
        "make the tensor an input of the model"
    ),
    r"(String|Unicode|Regex|StaticRegex)\w+|AsString|Substr|ReduceJoin|UnsortedSegmentJoin|(De|En)codeBase64": "process strings before the model",
    r"(Batch)?(Cholesky|SelfAdjointEig|Svd|Matrix(Inverse|Determinant|\w*Solve\w*))(V2)?|Lu|Qr|Eig|LogMatrixDeterminant|"
    r"Matrix(Exponential|Logarithm|SquareRoot)|TridiagonalSolve|BandedTriangularSolve": (
        "solve it before the model and feed the result, or write the formula out for small matrices"
    ),
    r"Bessel\w+|Dawsn|Expint|Fresnel\w+|Spence|Ndtri": "tabulate the function with tf.gather, or compute it before the model",
    r"(Stateless|Stateful)?(Random|Uniform|TruncatedNormal|StandardNormal|Parameterized|Multinomial|Shuffle)\w*": (
        "tf.random.uniform and tf.random.normal have builtins"
    ),
    r"Sparse\w+|(Des|S)erialize\w*Sparse|\w+SparseOutput": "dense tensors of a fixed length with padding, and tf.gather and sums over them",
    r"Ragged\w+": "dense tensors of a fixed length with padding, and tf.sequence_mask",
    r"(Anonymous)?Mutable\w*HashTable\w*|LookupTable\w+": "tf.lookup.StaticHashTable, whose contents are stored in the model",
    r"(Resource)?Scatter(Nd)?\w+|ResourceStridedSliceAssign|StridedSliceAssign": "tf.tensor_scatter_nd_update of the variable's value, then assign",
    r"Quantize\w*|Dequantize|Requantiz\w+": "the operators on floating point; the converter quantizes with `optimizations`",
    r"Tensor(List|Array)\w+": "a tf.TensorArray of a fixed size, which is written in a loop and stacked",
    r"Encode\w+": "encode the value behind the model",
}
for _names, _text in _TEXTS.items():
    ALTERNATIVES.update(dict.fromkeys(_names.split(), _text))
ALTERNATIVE_FAMILIES.update((re.compile(_pattern), _text) for _pattern, _text in _FAMILIES.items())
