"""What 16-bit numbers do to each op: the lists that the mixed precision rewrite goes by (`runtime/plan/mixed_precision.py`).

- ALLOW: products and convolutions. Nearly all of a network's arithmetic, many times quicker with 16-bit inputs, and their sums
  are accumulated in float32 by every kernel we call. Always converted.
- INFER: arithmetic that rounds its result but neither sums many terms nor stretches the range of what it is given. Worth
  converting between two converted ops, where it saves two conversions and half of the memory traffic; not worth the
  rounding elsewhere.
- CLEAR: ops that move, select or compare numbers, or look at shapes alone. What is a 16-bit number before is the same number
  after, so they are converted wherever their input already is.
- DENY: every other op stays in the dtype it has. These are the ones that need it: sums over many elements (Sum, Mean, L2Loss,
  BiasAddGrad, segment sums, cumulative sums), whose terms vanish beside the total; exponentials, logarithms, powers, roots
  and quotients of computed numbers (Exp, Log, Pow, Square, Rsqrt, Softmax and its losses), which leave float16's range;
  statistics (moments and the mean and variance inside of a batch normalization, whose data alone is converted); and
  everything that belongs to variables: reads, assignments, optimizer updates, moving averages.
"""

from __future__ import annotations

import enum


class Role(enum.Enum):
    """How the rewrite treats an op. An op without a role is denied: it keeps its dtype."""

    ALLOW = "allow"
    INFER = "infer"
    CLEAR = "clear"


_ALLOW = """
    MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum
    Conv2D Conv2DBackpropFilter Conv2DBackpropInput
    Conv3D Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv3DBackpropInput Conv3DBackpropInputV2
    DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput
"""
_INFER = """
    Add AddV2 AddN Sub Mul RealDiv BiasAdd BiasAddV1
    AvgPool AvgPoolGrad AvgPool3D AvgPool3DGrad
    FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGradV2 FusedBatchNormGradV3
    Sigmoid SigmoidGrad Tanh TanhGrad LeakyRelu LeakyReluGrad Elu EluGrad Selu SeluGrad
"""
_CLEAR = """
    Identity Snapshot PreventGradient StopGradient
    Relu Relu6 ReluGrad Relu6Grad Neg Abs Maximum Minimum ClipByValue
    MaxPool MaxPoolV2 MaxPoolGrad MaxPoolGradV2 MaxPoolGradGrad MaxPool3D MaxPool3DGrad
    Reshape Squeeze ExpandDims Transpose Concat ConcatV2 Pack Unpack Split SplitV Slice StridedSlice StridedSliceGrad
    Pad PadV2 MirrorPad Tile BroadcastTo Reverse ReverseV2 ReverseSequence Roll Select SelectV2
    Gather GatherV2 GatherNd SpaceToDepth DepthToSpace SpaceToBatchND BatchToSpaceND ZerosLike OnesLike
    Shape ShapeN Size Rank Greater GreaterEqual Less LessEqual Equal NotEqual IsFinite IsInf IsNan
"""

ROLES: dict[str, Role] = {
    name: role
    for role, names in ((Role.ALLOW, _ALLOW), (Role.INFER, _INFER), (Role.CLEAR, _CLEAR))
    for name in names.split()
}

# The type attributes that say what an op's data is. Others (U of a batch normalization) are left as they are.
DATA_TYPES = frozenset(("T", "Ta", "Tb", "Tout", "Tparams", "TInput"))
