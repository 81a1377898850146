"""The roles of ops in the mixed precision rewrite (`runtime/plan/mixed_precision.py`).

- ALLOW: products and convolutions. They are nearly all of a network's arithmetic and much faster with 16-bit inputs. Every
  kernel accumulates in float32. These ops are always converted.
- INFER: arithmetic that rounds its result, but neither sums many terms nor widens the range of its input. These ops are
  converted only between two converted ops, where that saves two conversions and half of the memory traffic. Elsewhere the
  loss of precision is not worth it.
- CLEAR: ops that move, select or compare numbers, or use only shapes. They do not round, so they are converted wherever
  their input is already in 16 bits.
- DENY: all other ops keep their dtype. Those that need it are: sums over many elements (Sum, Mean, L2Loss,
  BiasAddGrad, segment sums, cumulative sums), where small terms vanish; exponentials, logarithms, powers, roots
  and quotients of computed numbers (Exp, Log, Pow, Square, Rsqrt, Softmax and its losses), which exceed float16's range;
  statistics (moments, and the mean and variance in batch normalization, where only the data is converted); and
  everything that belongs to variables: reads, assignments, optimizer updates, moving averages.
"""

from __future__ import annotations

import enum


class Role(enum.Enum):
    """How the rewrite treats an op. An op without a role keeps its dtype."""

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

# The type attributes of the data inputs. Other type attributes (U of batch normalization) are not changed.
DATA_TYPES = frozenset(("T", "Ta", "Tb", "Tout", "Tparams", "TInput"))
