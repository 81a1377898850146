"""`tensorflow.python.tools.optimize_for_inference_lib`: a frozen graph without what only training needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.cli.internals.strip_unused import strip_unused
from stoker._src.formats.protos import GraphDef
from stoker._src.graph.graph_util import remove_training_nodes
from stoker._src.ops.io.tensor_messages import make_ndarray, make_tensor_proto

# The batch normalizations, and the positions of scale, offset, mean and variance among their inputs.
_NORMS = {
    "FusedBatchNorm": (1, 2, 3, 4),
    "FusedBatchNormV2": (1, 2, 3, 4),
    "FusedBatchNormV3": (1, 2, 3, 4),
    "BatchNormWithGlobalNormalization": (4, 3, 1, 2),
}
_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")


def optimize_for_inference(
    input_graph_def: Any,
    input_node_names: Any,
    output_node_names: Any,
    placeholder_type_enum: Any,
    toco_compatible: bool = False,
) -> Any:
    """Keeps what leads from inputs to outputs, drops identities and checks, and folds batch normalizations into convolutions.

    Args:
        input_graph_def: a GraphDef whose variables are constants.
        input_node_names: nodes that become placeholders.
        output_node_names: nodes to keep.
        placeholder_type_enum: the dtype of the placeholders.
        toco_compatible: whether to leave out steps that TFLite's converter could not read; none of these are of that kind.
    """
    kept = strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    return fold_batch_norms(remove_training_nodes(kept, output_node_names))


def fold_batch_norms(input_graph_def: Any) -> Any:
    """Returns the graph with batch normalizations after convolutions of constant filters as products of the filters, plus an offset."""
    nodes = {node.name: node for node in input_graph_def.node}
    uses: dict[str, int] = {}
    for node in input_graph_def.node:
        for name in node.input:
            uses[_plain(name)] = uses.get(_plain(name), 0) + 1
    replaced: dict[str, list[Any]] = {}
    dropped: set[str] = set()
    for node in input_graph_def.node:
        folded = _folded(node, nodes, uses)
        if folded is not None:
            replaced[node.name], gone = folded
            dropped |= gone
    result = GraphDef()
    for node in input_graph_def.node:
        if node.name in replaced:
            result.node.extend(replaced[node.name])
        elif node.name not in dropped:
            result.node.add().CopyFrom(node)
    result.library.CopyFrom(input_graph_def.library)
    result.versions.CopyFrom(input_graph_def.versions)
    return result


def _plain(name: str) -> str:
    return name.lstrip("^").partition(":")[0]


def _folded(node: Any, nodes: dict[str, Any], uses: dict[str, int]) -> tuple[list[Any], set[str]] | None:
    """The nodes that take the place of a normalization, and the names of those that it no longer needs; None where it stays."""
    if node.op not in _NORMS or node.attr["is_training"].b:
        return None
    convolution = nodes.get(_plain(node.input[0]))
    if convolution is None or convolution.op not in _CONVOLUTIONS or uses[convolution.name] > 1:
        return None
    sources = [nodes.get(_plain(convolution.input[1])), *(nodes.get(_plain(node.input[i])) for i in _NORMS[node.op])]
    if any(each is None or each.op != "Const" for each in sources):
        return None
    filters, scale, offset, mean, variance = (
        make_ndarray(each.attr["value"].tensor) for each in sources if each is not None
    )
    epsilon = node.attr["variance_epsilon" if node.op == "BatchNormWithGlobalNormalization" else "epsilon"].f
    if node.op == "BatchNormWithGlobalNormalization" and not node.attr["scale_after_normalization"].b:
        scale = np.ones_like(mean)
    factor = scale / np.sqrt(variance + epsilon)
    # The outputs of a depthwise convolution are counted by its last two dimensions together.
    shaped = factor.reshape(filters.shape[2:]) if convolution.op == "DepthwiseConv2dNative" else factor
    made = GraphDef()
    name = convolution.name
    for label, value in ((f"{name}_weights", filters * shaped), (f"{name}_offset", offset - mean * factor)):
        constant = made.node.add(name=label, op="Const")
        constant.attr["dtype"].CopyFrom(convolution.attr["T"])
        constant.attr["value"].tensor.CopyFrom(make_tensor_proto(value.astype(filters.dtype)))
    moved = made.node.add()
    moved.CopyFrom(convolution)
    moved.input[1] = f"{name}_weights"
    added = made.node.add(name=node.name, op="BiasAdd", input=[name, f"{name}_offset"])
    added.attr["T"].CopyFrom(convolution.attr["T"])
    added.attr["data_format"].CopyFrom(convolution.attr["data_format"])
    gone = {name} | {each.name for each in sources if each is not None and uses[each.name] == 1}
    return list(made.node), gone
