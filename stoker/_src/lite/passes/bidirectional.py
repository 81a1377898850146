"""Two fused recurrent layers that read a sequence in both directions become one operator."""

from __future__ import annotations

from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Operator, Tensor
from stoker._src.lite.passes.editing import Editor, Rule, plain

# code of one direction -> of both, and the positions of weights and of states among the inputs of one direction
_BOTH = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("BIDIRECTIONAL_SEQUENCE_LSTM", range(1, 18), (18, 19)),
    "UNIDIRECTIONAL_SEQUENCE_RNN": ("BIDIRECTIONAL_SEQUENCE_RNN", range(1, 5), ()),
}
# The arguments of a second sequence, which is not used.
_AUXILIARY = {"BIDIRECTIONAL_SEQUENCE_LSTM": 9, "BIDIRECTIONAL_SEQUENCE_RNN": 3}


def joined_directions(editor: Editor, operator: Operator) -> bool:
    """concat([cell(x), reverse(cell(reverse(x)))]) along the last dimension. The first dimension is time."""
    if len(operator.inputs) != 2 or not plain(operator) or operator.options.axis not in (2, -1):
        return False
    first, last = operator.inputs
    forward = editor.made_by(first, *_BOTH)
    turned = _reversed(editor, last)
    backward = editor.made_by(turned, *_BOTH)
    if forward is None or backward is None or forward is backward or forward.code != backward.code:
        return False
    source = forward.inputs[0]
    if _reversed(editor, backward.inputs[0]) is not source or vars(forward.options) != vars(backward.options):
        return False
    if not forward.options.timeMajor or any(each is not None for each in (*forward.inputs[20:], *backward.inputs[20:])):
        return False
    assert first is not None and last is not None and turned is not None
    if not editor.is_private(first, operator) or not editor.is_private(last, operator):
        return False
    if turned in editor.outputs or len(editor.consumers[turned]) != 1:
        return False
    code, weights, states = _BOTH[forward.code]
    inputs: list[Tensor | None] = [source]
    for positions in (weights, states):
        for cell in (forward, backward):
            inputs.extend(cell.inputs[place] for place in positions)
    inputs.extend([None] * _AUXILIARY[code])
    editor.change(operator, code, inputs, options=_options(code, forward.options))
    return True


def _reversed(editor: Editor, tensor: Tensor | None) -> Tensor | None:
    """The sequence that a tensor is in the reverse order of time."""
    maker = editor.made_by(tensor, "REVERSE_V2")
    axes = None if maker is None or maker.inputs[1] is None else maker.inputs[1].data
    if maker is None or axes is None or axes.reshape(-1).tolist() not in ([0], [-3]):
        return None
    return maker.inputs[0]


def _options(code: str, one: object) -> object:
    both = schema.BidirectionalSequenceLSTMOptionsT() if "LSTM" in code else schema.BidirectionalSequenceRNNOptionsT()
    for name, value in vars(one).items():
        if hasattr(both, name):
            setattr(both, name, value)
    both.mergeOutputs = True
    return both


DIRECTIONS: dict[str, list[Rule]] = {"CONCATENATION": [joined_directions]}
