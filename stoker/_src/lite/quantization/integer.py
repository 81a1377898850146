"""Full integer quantization: every op that has an integer kernel works on integers, from ranges that were observed or trained.

First each tensor gets a scale and a zero point, in the order of the operators. Then the operators are rewritten, and conversions are inserted
where integers meet floating point, or two scales meet.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from stoker._src.lite.model import TYPE_CODES, Model, Operator, Quantization, Subgraph, Tensor
from stoker._src.lite.quantization import arrays, recurrent
from stoker._src.lite.quantization.forms import is_private
from stoker._src.lite.quantization.interface import Interface
from stoker._src.lite.quantization.plan import Plan, QuantizationError, TrainedRange
from stoker._src.lite.quantization.schemes import (
    ASKING,
    BIASES,
    CHANNELS,
    DATA,
    FIXED,
    FREE,
    INT8,
    INT16,
    ONLY_IF_STRICT,
    PASSED,
    PASSING,
    SHARING,
    WEIGHTS,
    Scheme,
    covers,
    fixed,
    limits,
    parameters,
    quantizable,
    represented,
    same,
)
from stoker._src.lite.verification.rules import COMPARISONS, scale_problem

# NONE, RELU, RELU_N1_TO_1 and RELU6 are clamps, which integer kernels do; TANH and SIGN_BIT are not.
_CLAMPS = (0, 1, 2, 3)
_CLAMPING = frozenset(("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"))
# The numbers of INT8 that bytes are.
_BYTES = {"UINT8": fixed(1.0, -128), "INT8": fixed(1.0, 0)}
# Ops of loops that stay in 8 bits: the elements of a list are replaced one by one, which collects no errors.
_NARROW = frozenset(("DYNAMIC_UPDATE_SLICE",))
# Ops that choose values by comparing them.
_CHOOSING = COMPARISONS | {"LOGICAL_AND", "LOGICAL_OR", "REDUCE_ANY", "MAXIMUM", "SELECT", "SELECT_V2"}
# More steps of a sum than this for one step of an argument, and the sum knows less than half of its bits.
_CANCELLING = 16.0
# The factor by which a tensor's scale may become coarser to avoid a conversion.
_COARSER = 1.25


def quantize_integer(model: Model, plan: Plan, input_type: str, output_type: str) -> None:
    """Rewrites the subgraphs of all signatures, and the loops and branches that they run.

    Args:
        model: the float model.
        plan: ranges and number formats.
        input_type, output_type: "FLOAT32", or the integer type of the model's inputs and outputs.

    Raises:
        QuantizationError: the plan is strict, and an op has no integer kernel or no range.
    """
    rewritings = [_Rewriting(subgraph, plan) for subgraph in model.entries]
    reasons: dict[Operator, str] = {}
    for each in rewritings:
        each.decide_all()
        reasons |= each.reasons
    if plan.strict and reasons:
        raise QuantizationError(_report(reasons))
    for each in rewritings:
        each.rewrite_all()
        Interface(model, each.subgraph, plan).run(input_type, output_type)


class _Rewriting:
    """Rewrites one subgraph.

    A `wide` one is the body of a loop. Its state and its arithmetic have 16 bits where there are kernels, because the rounding errors of 8 bits add up
    over the turns of a loop.
    """

    def __init__(self, subgraph: Subgraph, plan: Plan, wide: bool = False) -> None:
        self.subgraph, self.plan, self.wide = subgraph, plan, wide
        self.types: dict[Tensor, str] = {}
        """The integer types of tensors that have not that of the plan."""
        self.consumers = subgraph.consumers()
        self.producers = subgraph.producers()
        self.chosen: set[Operator] = set()
        self.numbers: dict[Tensor, Quantization] = dict(plan.given)
        self.settled: set[Tensor] = set()
        self.absorbed: set[Operator] = set()
        self.of_bytes: set[Operator] = set()
        """The conversions of bytes to real numbers."""
        self.reasons: dict[Operator, str] = {}
        self.made: list[Operator] = []
        self.integers: dict[Tensor, Tensor] = {}
        self.floats: dict[Tensor, Tensor] = {}
        self.others: dict[Any, Tensor] = {}

        self.inner: dict[Operator, list[_Rewriting]] = {}
        """The rewriters of the subgraphs of loops and branches."""
        self.given: set[Tensor] = set()
        """Inputs that the caller passes as integers."""
        self.wanted: dict[int, tuple[Quantization, str]] = {}
        """The scales and types of outputs that the caller receives as integers, by position."""

        self.before_suppression = _before_suppression(subgraph, self.consumers)
        keeps_floats = not plan.strict and not plan.trained
        self.before_logarithm = _before_logarithm(subgraph, self.consumers) if keeps_floats else set()
        self.beside_logarithm = _beside_logarithm(subgraph, self.producers, self.consumers) if keeps_floats else set()

    def decide_all(self) -> None:
        for operator in self.subgraph.operators:
            reason = self.decide(operator)
            if reason:
                self.reasons[operator] = reason
            else:
                self.chosen.add(operator)

    def rewrite_all(self) -> None:
        for place, tensor in enumerate(self.subgraph.inputs):
            if tensor in self.given:
                self.subgraph.inputs[place] = self.result(tensor)
        for operator in self.subgraph.operators:
            if operator in self.chosen:
                self.rewrite(operator)
            else:
                operator.inputs = [None if each is None else self.floating(each) for each in operator.inputs]
                self.made.append(operator)
        self.subgraph.outputs = [
            self.integer(each, *self.wanted[place]) if place in self.wanted else self.floating(each)
            for place, each in enumerate(self.subgraph.outputs)
        ]
        self.subgraph.operators = _without_unused(self.made, self.subgraph.outputs)

    # -- types ---------------------------------------------------------------------------------------------------

    def scheme(self, operator: Operator) -> Scheme:
        """The number format that an operator works in. Ops that only move values around keep the type of their argument."""
        if not self.wide or operator.code in _NARROW or not quantizable(operator.code, INT16):
            return self.plan.scheme
        if operator.code in PASSING:
            source = operator.inputs[PASSED.get(operator.code, 0)]
            assert source is not None
            return self.plan.scheme if self.type_of(source) != INT16.activations else INT16
        return INT16

    def type_of(self, tensor: Tensor) -> str:
        """The integer type of a tensor."""
        return self.types.get(tensor, self.plan.scheme.activations)

    # -- scales --------------------------------------------------------------------------------------------------

    def decide(self, operator: Operator) -> str:
        """Chooses the scales of an operator's results. Returns the reason why it stays in floating point, or ""."""
        code = operator.code
        touched = [
            each for each in [*operator.inputs, *operator.outputs] if each is not None and each.type == "FLOAT32"
        ]
        if not touched:
            return ""  # no real numbers: nothing changes
        if code in ("WHILE", "IF"):
            return self.decide_flow(operator)
        if code == "CUSTOM":
            return self.decide_custom(operator)
        if self.takes_bytes(operator):
            self.of_bytes.add(operator)
            self.numbers[operator.outputs[0]] = _BYTES[operator.inputs[0].type]  # type: ignore[union-attr]
            return ""
        if code == "CAST" and not self.takes_truth(operator) and not self.takes_small_integers(operator):
            return "it takes numbers from one kind to another"
        scheme = self.scheme(operator)
        if code == recurrent.CODE and scheme.activations == "INT8":
            return self.decide_lstm(operator)
        unwanted = not self.plan.strict and code in ONLY_IF_STRICT.get(scheme.activations, ())
        if not quantizable(code, scheme) or code in self.plan.floating or unwanted:
            return f"{operator.kind} has no kernel for {scheme.activations}"
        if operator in self.before_suppression:
            return "it prepares arguments of a non-maximum suppression, which is floating point"
        if operator in self.before_logarithm:
            return "a logarithm reads its result, which has no steps near zero"
        if operator in self.beside_logarithm:
            return "it is a part of a softplus, whose logarithm is floating point"
        if getattr(operator.options, "fusedActivationFunction", 0) not in _CLAMPS:
            return "its fused activation is not a clamp"
        if any(each.is_variable for each in touched):
            return "it has a state"
        reals = self.real_inputs(operator)
        for tensor in reals:
            if tensor.data is not None and code not in SHARING and not np.isfinite(tensor.data).all():
                return f"'{tensor.name}' is not finite"
            if not tensor.is_constant and not self.known(tensor):
                return f"the range of '{tensor.name}' is not known"
        if code in WEIGHTS:
            return self.decide_product(operator)
        if (code in PASSING or code in ASKING) and not any(self.in_integers(each) for each in reals):
            return f"its input '{reals[0].name if reals else ''}' is floating point"
        reason = self.decide_results(operator, reals)
        if not reason and code in ("ADD", "SUB"):
            given, operator.inputs = operator.inputs, self.limited_addends(operator)
            reason = self.scale_obstacle(operator, self.real_inputs(operator))
            if reason:
                operator.inputs = given
        elif not reason:
            reason = self.scale_obstacle(operator, reals)
        if not reason and code in _CLAMPING:
            self.absorb_clamp(operator)
        return reason

    def takes_bytes(self, operator: Operator) -> bool:
        """Whether an operator makes real numbers of bytes, such as pictures, which only such operators read: numbers with a scale of one."""
        source = operator.inputs[0] if operator.code == "CAST" else None
        if source is None or source.type not in _BYTES or source.is_constant:
            return False
        if self.plan.scheme is not INT8 or self.wide or operator.code in self.plan.floating:
            return False
        readers = self.consumers[source]
        return source not in self.subgraph.outputs and all(
            each.code == "CAST" and each.outputs[0].type == "FLOAT32" for each in readers
        )

    def takes_truth(self, operator: Operator) -> bool:
        return operator.inputs[0] is not None and operator.inputs[0].type == "BOOL"

    def takes_small_integers(self, operator: Operator) -> bool:
        """Whether an operator makes real numbers of integers, such as masks, that were all so small that they are numbers with a scale of one.

        Others become other numbers, so this is done only where floating point is not allowed.
        """
        (source,), (result,) = operator.inputs, operator.outputs
        if not self.plan.strict or self.plan.trained or source is None or source.type not in ("INT32", "INT64"):
            return False
        if result.type != "FLOAT32" or result not in self.plan.ranges:
            return False
        low, high = self.plan.ranges[result]
        smallest, largest = limits(self.scheme(operator).activations)
        return smallest <= low and high <= largest

    def scale_obstacle(self, operator: Operator, reals: list[Tensor]) -> str:
        """Why the integer kernel does not work with the scales of its arguments and results, or ""."""
        kind = self.scheme(operator).activations
        inputs = [float(self.number_of(each, kind).scale[0]) for each in reals]  # type: ignore[index]
        if operator.code in COMPARISONS and max(inputs) >= 1:
            return f"it compares numbers with the scale {max(inputs):g}, and its kernel takes scales below 1"
        results = [float(self.numbers[each].scale[0]) for each in operator.outputs if each.type == "FLOAT32"]  # type: ignore[index]
        if operator.code in ("ADD", "SUB") and kind != INT16.activations and not self.plan.strict:
            if max(inputs) > _CANCELLING * results[0]:
                return f"its result is so much smaller than its arguments that a step of these is {max(inputs) / results[0]:.0f} steps of it"
        return scale_problem(operator.code, kind, inputs, results)

    def limited_addends(self, operator: Operator) -> list[Tensor | None]:
        """The arguments of a sum, without constants so large that the result leaves its range whatever the other argument is, as those of masks are."""
        made = list(operator.inputs)
        for place, tensor in enumerate(operator.inputs):
            other = operator.inputs[1 - place]
            if tensor is None or tensor.data is None or other is None or other.data is not None:
                continue
            most = 0.0
            for each in (other, operator.outputs[0]):
                most += max(map(abs, represented(self.number_of(each), self.type_of(each))))
            if np.abs(tensor.data).max(initial=0.0) > most:
                limited = np.clip(tensor.data, -most, most).astype(np.float32)
                made[place] = Tensor(tensor.name, tensor.type, tensor.shape, limited)
        return made

    def absorb_clamp(self, operator: Operator) -> None:
        """Lets the op before a clamp use the clamp's range: values outside are clipped when they are stored."""
        (tensor,), (result,) = operator.inputs, operator.outputs
        if tensor is None or tensor.is_constant or self.plan.trained or self.type_of(result) == INT16.activations:
            return  # numbers of 16 bits reach as far below zero as above
        forms, producer = [tensor], self.producers.get(tensor)
        while producer is not None and producer in self.chosen and producer.code in PASSING:
            source = producer.inputs[PASSED.get(producer.code, 0)]
            assert source is not None
            forms.append(source)
            producer = self.producers.get(source)
        if producer is None or producer not in self.chosen or not (producer.code in WEIGHTS or producer.code in FREE):
            return
        if producer.code in _CLAMPING or any(
            len(self.consumers[each]) != 1
            or each in self.subgraph.outputs
            or each in self.settled
            or self.type_of(each) != self.type_of(result)
            for each in forms
        ):
            return
        for each in forms:
            self.numbers[each] = self.numbers[result]
            self.settled.add(each)
        self.absorbed.add(operator)

    def real_inputs(self, operator: Operator) -> list[Tensor]:
        """The arguments that are quantized with a scale for activations."""
        skipped = {WEIGHTS.get(operator.code), BIASES.get(operator.code)} - {None}
        return [
            each
            for place, each in enumerate(operator.inputs)
            if each is not None and each.type == "FLOAT32" and place not in skipped
        ]

    def known(self, tensor: Tensor) -> bool:
        return tensor in self.numbers or tensor in self.plan.ranges

    def in_integers(self, tensor: Tensor) -> bool:
        """Whether a tensor already exists in integers, or is an input that is best converted immediately."""
        producer = self.producers.get(tensor)
        if producer is None:
            return tensor in self.subgraph.inputs or tensor.is_constant
        return producer in self.chosen

    def only_in_integers(self, tensor: Tensor) -> bool:
        return tensor in self.given or self.producers.get(tensor) in self.chosen

    def decide_product(self, operator: Operator) -> str:
        code = operator.code
        weights = operator.inputs[WEIGHTS[code]]
        if weights is None or weights.data is None or weights.type != "FLOAT32":
            return "its weights are not constant"
        place = BIASES[code]
        bias = operator.inputs[place] if place < len(operator.inputs) else None
        if bias is not None and (bias.data is None or bias.type != "FLOAT32"):
            return "its bias is not constant"
        return self.decide_results(operator, [operator.inputs[DATA.get(code, 0)]])  # type: ignore[list-item]

    def decide_lstm(self, operator: Operator) -> str:
        reason = recurrent.obstacle(operator)
        data, (result,) = operator.inputs[0], operator.outputs
        cell = operator.inputs[recurrent.CELL_STATE]
        for tensor in (data, cell, result):
            if not reason and (tensor is None or not self.known(tensor)):
                reason = f"the range of '{'' if tensor is None else tensor.name}' is not known"
        return reason or self.decide_results(operator, [data])  # type: ignore[list-item]

    def decide_custom(self, operator: Operator) -> str:
        """A custom op that was trained with fake quantization reads integers, if it says so. Its results are in floating point."""
        options = _flexible(operator.custom_options)
        if not self.plan.trained or not options.get("_output_quantized"):
            return f"{operator.kind} has no kernel for {self.plan.scheme.activations}"
        if not options.get("_support_output_type_float_in_quantized_op"):
            return f"{operator.kind} gives integers of an unknown scale"
        unknown = [each for each in self.real_inputs(operator) if not each.is_constant and not self.known(each)]
        return f"the range of '{unknown[0].name}' is not known" if unknown else ""

    def decide_flow(self, operator: Operator) -> str:
        """Gives a loop variable the same scale in every iteration, and the result of a branch the same scale in both branches."""
        if operator.code == "WHILE" and not self.plan.strict:
            return "a loop's state stays in floating point, because rounding errors would add up over its turns"
        first = 1 if operator.code == "IF" else 0
        bodies = operator.subgraphs[:2] if operator.code == "IF" else operator.subgraphs[1:2]
        wide = self.wide or (operator.code == "WHILE" and self.plan.scheme is INT8 and not self.plan.trained)
        inner = [_Rewriting(each, self.plan, wide) for each in operator.subgraphs[:2]]
        for place, tensor in enumerate(operator.inputs[first:]):
            if tensor is None or tensor.type != "FLOAT32":
                continue
            tied = [tensor]
            if operator.code == "WHILE":
                tied += [operator.outputs[place], *(each.outputs[place] for each in bodies)]
                type_name = inner[1].type_of_state(place)
            else:
                type_name = self.type_of(tensor)
            numbers = self.shared_number(tied, type_name)
            if numbers is None:
                return f"the range of '{tensor.name}' is not known"
            for each in inner:
                own = each.subgraph.inputs[place]
                each.numbers[own], each.types[own] = numbers, type_name
                each.given.add(own)
        for place, tensor in enumerate(operator.outputs):
            if tensor.type != "FLOAT32":
                continue
            if operator.code == "WHILE":
                state = inner[1].subgraph.inputs[place]
                numbers, type_name = inner[1].numbers[state], inner[1].type_of(state)
            else:
                type_name = INT16.activations if self.wide else self.plan.scheme.activations
                numbers = self.shared_number([tensor, *(each.outputs[place] for each in bodies)], type_name)
            if numbers is None:
                return f"the range of '{tensor.name}' is not known"
            self.numbers[tensor], self.types[tensor] = numbers, type_name
            for each in inner[first - 1 :]:
                each.wanted[place] = numbers, type_name
        for each in inner:
            each.decide_all()
            self.reasons |= each.reasons
        self.inner[operator] = inner
        return ""

    def type_of_state(self, place: int) -> str:
        """The type of a variable of the loop that this subgraph is the body of.

        What the loop does not change does not collect errors.
        """
        before, after = self.subgraph.inputs[place], self.subgraph.outputs[place]
        producer = self.producers.get(after)
        if before is after or (producer is not None and self.scheme(producer) is not INT16):
            return self.plan.scheme.activations
        return INT16.activations if self.wide else self.plan.scheme.activations

    def shared_number(self, tensors: list[Tensor], type_name: str) -> Quantization | None:
        """A common scale, or None if no range is known, as in a loop that no sample entered."""
        bounds = [
            (float(each.data.min(initial=0.0)), float(each.data.max(initial=0.0)))
            if each.data is not None
            else self.plan.ranges[each]
            for each in tensors
            if each.is_constant or each in self.plan.ranges
        ]
        if not bounds or all(each.is_constant for each in tensors):
            return None
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
        return parameters(low, high, type_name, type_name == INT16.activations)

    def decide_results(self, operator: Operator, reals: list[Tensor]) -> str:
        code = operator.code
        results = [each for each in operator.outputs if each.type == "FLOAT32"]
        type_name = self.scheme(operator).activations
        fixed = FIXED.get(code, {}).get(type_name)
        self.types.update(dict.fromkeys(results, type_name))
        if code in PASSING:
            source = operator.inputs[PASSED.get(code, 0)]
            assert source is not None
            chosen = self.number_of(source)
            for tensor in results:
                self.numbers[tensor] = chosen
            return ""
        for tensor in results:
            if fixed is not None:
                self.numbers[tensor] = fixed
            elif not self.known(tensor):
                return f"the range of '{tensor.name}' is not known"
            else:
                self.number_of(tensor)
        if self.shares(operator) and results and not self.plan.trained:
            for tensor in self.sharing(operator):
                if self.type_of(tensor) == type_name:
                    self.adopt(tensor, self.numbers[results[0]], operator)
        return ""

    def shares(self, operator: Operator) -> bool:
        """Whether a kernel needs the same scale for its arguments and its result. The UINT8 kernel for concatenation accepts several."""
        return operator.code in SHARING and (operator.code, self.plan.scheme.activations) != ("CONCATENATION", "UINT8")

    def sharing(self, operator: Operator) -> list[Tensor]:
        places = SHARING[operator.code]
        found = [each for place, each in enumerate(operator.inputs) if places is None or place in places]
        return [each for each in found if each is not None and each.type == "FLOAT32"]

    def adopt(self, tensor: Tensor, numbers: Quantization, reader: Operator) -> None:
        """Gives a tensor the scale of an op that reads it, which avoids a conversion.

        If nobody else reads it, it is rounded once instead of twice. What lies outside of the range of a maximum is of no use to it. Other readers need the
        whole range of the tensor, in a scale that is not much coarser.

        A tensor that is only rearranged on the way shares one scale with its rearranged forms.
        """
        root, is_private = tensor, self.is_read_by(tensor, reader)
        producer = self.producers.get(tensor)
        while producer is not None and producer in self.chosen and producer.code in PASSING:
            source = producer.inputs[PASSED.get(producer.code, 0)]
            assert source is not None
            is_private = is_private and self.is_read_by(source, producer) and len(producer.outputs) == 1
            root, producer = source, self.producers.get(source)
        if root in self.settled or root in self.plan.given or root in self.given:
            return
        if producer is None:
            if not is_private:
                return
        elif producer not in self.chosen or not (producer.code in WEIGHTS or producer.code in FREE):
            return
        elif producer.code in ("ADD", "SUB"):
            scales = [float(self.number_of(each).scale[0]) for each in self.real_inputs(producer)]  # type: ignore[index]
            if scale_problem(producer.code, self.type_of(root), scales, [float(numbers.scale[0])]):  # type: ignore[index]
                return
        own = self.number_of(root)
        assert own.scale is not None and numbers.scale is not None
        if not is_private and numbers.scale[0] > _COARSER * own.scale[0]:
            return
        if not (is_private and root is tensor) and not covers(numbers, own, self.type_of(root)):
            return
        waiting = [root]
        while waiting:
            form = waiting.pop()
            self.settled.add(form)
            self.numbers[form] = numbers
            for reader in self.consumers.get(form, []):
                if (
                    reader in self.chosen
                    and reader.code in PASSING
                    and reader.inputs[PASSED.get(reader.code, 0)] is form
                ):
                    waiting.extend(each for each in reader.outputs if each.type == "FLOAT32")

    def is_read_by(self, tensor: Tensor, reader: Operator) -> bool:
        """Whether a single input of an op is the only reader of a tensor."""
        return self.consumers.get(tensor) == [reader] and tensor not in self.subgraph.outputs

    def number_of(self, tensor: Tensor, type_name: str = "") -> Quantization:
        """The scale of a tensor in its type, or in another one."""
        own = self.type_of(tensor)
        type_name = type_name or own
        if type_name == own and tensor in self.numbers:
            return self.numbers[tensor]
        if tensor in self.plan.ranges:
            low, high = self.plan.ranges[tensor]
        elif tensor.data is not None:
            finite = tensor.data[np.isfinite(tensor.data)]
            low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
        else:
            low, high = represented(self.numbers[tensor], own)
        found = parameters(low, high, type_name, type_name == INT16.activations)
        if type_name == own:
            self.numbers[tensor] = found
        return found

    # -- rewriting -----------------------------------------------------------------------------------------------

    def rewrite(self, operator: Operator) -> None:
        code, scheme = operator.code, self.scheme(operator)
        results = [each for each in operator.outputs if each.type == "FLOAT32"]
        if operator in self.absorbed:
            (tensor,), (result,) = operator.inputs, operator.outputs
            assert tensor is not None
            self.integers[result] = self.integer(tensor)
            return
        if code in WEIGHTS:
            self.rewrite_product(operator)
        elif operator in self.inner:
            self.rewrite_flow(operator)
        elif code == recurrent.CODE and results:
            self.rewrite_lstm(operator)
        else:
            if code == "MUL" and results:
                self.limit_factor(operator)
            wanted = self.numbers[results[0]] if self.shares(operator) and results else None
            shared = set(self.sharing(operator)) if wanted is not None else set()
            operator.inputs = [
                each
                if each is None or each.type != "FLOAT32"
                else self.integer(each, wanted if each in shared else None, scheme.activations)
                for each in operator.inputs
            ]
        if scheme.activations == "INT16" and hasattr(operator.options, "potScaleInt16"):
            # Scales are not powers of two.
            operator.options = copy.copy(operator.options)
            operator.options.potScaleInt16 = False
        if operator in self.of_bytes:
            (source,) = operator.inputs
            assert source is not None
            source.quantization = fixed(1.0, 0)
            operator.code, operator.options = "QUANTIZE", None
        elif code == "CAST":
            operator.options = copy.copy(operator.options)
            operator.options.outDataType = TYPE_CODES[scheme.activations]
        if code != "CUSTOM":
            operator.outputs = [self.result(each) if each.type == "FLOAT32" else each for each in operator.outputs]
        self.made.append(operator)

    def limit_factor(self, operator: Operator) -> None:
        """Replaces constants so large that one step of the other factor exceeds all that the result can store, as those of masks do.

        The kernel's own numbers would overflow.
        """
        for place, tensor in enumerate(operator.inputs):
            other = operator.inputs[1 - place]
            if tensor is None or tensor.data is None or other is None or other.data is not None:
                continue
            (result,) = operator.outputs
            step = self.number_of(other).scale
            assert step is not None
            most = max(map(abs, represented(self.numbers[result], self.type_of(result)))) / float(step[0])
            if np.abs(tensor.data).max(initial=0.0) > most:
                limited = np.clip(tensor.data, -most, most).astype(np.float32)
                operator.inputs[place] = Tensor(tensor.name, tensor.type, tensor.shape, limited)

    def rewrite_flow(self, operator: Operator) -> None:
        first = 1 if operator.code == "IF" else 0
        body = self.inner[operator][-1]
        operator.inputs = [
            each
            if each is None or each.type != "FLOAT32"
            else self.integer(each, *body.numbers_of_input(place - first))
            for place, each in enumerate(operator.inputs)
        ]
        for each in self.inner[operator]:
            each.rewrite_all()

    def numbers_of_input(self, place: int) -> tuple[Quantization, str]:
        tensor = self.subgraph.inputs[place]
        return self.numbers[tensor], self.type_of(tensor)

    def rewrite_lstm(self, operator: Operator) -> None:
        data, cell = operator.inputs[0], operator.inputs[recurrent.CELL_STATE]
        assert data is not None and cell is not None
        output = hidden = self.numbers[operator.outputs[0]]
        projection = operator.inputs[recurrent.PROJECTION]
        if projection is not None:
            hidden = parameters(*self.plan.ranges[projection], self.plan.scheme.activations)

        def weights(tensor: Tensor) -> Tensor:
            key = (tensor, None)
            if key not in self.others:
                self.others[key] = arrays.symmetric_weights(tensor, None)
            return self.others[key]

        taken = self.integer(data, None, self.plan.scheme.activations)
        recurrent.rewrite_lstm(operator, taken, output, hidden, self.plan.ranges[cell], weights)

    def result(self, tensor: Tensor) -> Tensor:
        made = Tensor(f"{tensor.name}/integer", self.type_of(tensor), tensor.shape, None, self.numbers[tensor])
        self.integers[tensor] = made
        return made

    def rewrite_product(self, operator: Operator) -> None:
        code, scheme = operator.code, self.scheme(operator)
        data_place, weights_place, bias_place = DATA.get(code, 0), WEIGHTS[code], BIASES[code]
        inputs = list(operator.inputs)
        data, weights = inputs[data_place], inputs[weights_place]
        assert data is not None and weights is not None
        inputs[data_place] = made = self.integer(data, None, scheme.activations)
        inputs[weights_place] = quantized = self.weights(weights, code)
        bias = inputs[bias_place] if bias_place < len(inputs) else None
        if bias is not None:
            assert made.quantization is not None and quantized.quantization is not None
            scales = (made.quantization.scale, quantized.quantization.scale)
            assert scales[0] is not None and scales[1] is not None
            inputs[bias_place] = arrays.bias(bias, scales[0], scales[1], scheme.biases)
        operator.inputs = inputs

    def weights(self, tensor: Tensor, code: str) -> Tensor:
        key = (tensor, CHANNELS.get(code))
        if key not in self.others:
            trained = self.plan.weight_ranges.get(tensor) or self.trained_range(tensor)
            if self.plan.scheme.weights != "INT8":
                assert tensor.data is not None
                low, high = (
                    (trained.low, trained.high) if trained else (float(tensor.data.min()), float(tensor.data.max()))
                )
                made = arrays.ranged_weights(
                    tensor, low, high, self.plan.scheme.weights, trained is not None and trained.narrow
                )
            elif trained is not None:
                # Weights in INT8 have no zero point: the range is made symmetric.
                made = arrays.symmetric_weights(tensor, None, max(-trained.low, trained.high))
            else:
                made = arrays.symmetric_weights(tensor, self.plan.channels(code))
            self.others[key] = made
        return self.others[key]

    def trained_range(self, tensor: Tensor) -> TrainedRange | None:
        assert tensor.data is not None
        return next((each for each in self.plan.grids if _on_grid(tensor.data, each)), None)

    def integer(self, tensor: Tensor, wanted: Quantization | None = None, type_name: str = "") -> Tensor:
        """The tensor in integers, with the requested scale and type."""
        type_name = type_name or self.type_of(tensor)
        numbers = wanted or self.number_of(tensor, type_name)
        if tensor.is_constant:
            return self.constant(tensor, numbers, type_name)
        made = self.integers.get(tensor)
        if made is None and wanted is not None and tensor not in self.subgraph.inputs:
            return self.rescaled(tensor, tensor, wanted, type_name)
        if made is None:
            made = Tensor(f"{tensor.name}/integer", self.type_of(tensor), tensor.shape, None, self.number_of(tensor))
            self.integers[tensor] = made
            self.made.append(Operator("QUANTIZE", [tensor], [made]))
        if made.type == type_name and same(made.quantization, numbers):
            return made
        return self.rescaled(tensor, made, numbers, type_name)

    def rescaled(self, tensor: Tensor, source: Tensor, numbers: Quantization, type_name: str) -> Tensor:
        """The tensor in integers of another scale or type, converted from its existing form."""
        key = _form(tensor, numbers, type_name)
        if key not in self.others:
            made = Tensor(f"{tensor.name}/rescaled", type_name, tensor.shape, None, numbers)
            self.made.append(Operator("QUANTIZE", [source], [made]))
            self.others[key] = made
        return self.others[key]

    def constant(self, tensor: Tensor, numbers: Quantization, type_name: str) -> Tensor:
        key = _form(tensor, numbers, type_name)
        if key not in self.others:
            assert tensor.data is not None
            values = arrays.stored(tensor.data, numbers, type_name)
            self.others[key] = Tensor(tensor.name, type_name, tensor.shape, values, numbers)
        return self.others[key]

    def floating(self, tensor: Tensor) -> Tensor:
        """A tensor in floating point."""
        made = self.integers.get(tensor)
        if tensor.type != "FLOAT32" or made is None or not self.only_in_integers(tensor):
            return tensor
        if tensor not in self.floats:
            self.made.append(Operator("DEQUANTIZE", [made], [tensor]))
            self.floats[tensor] = tensor
        return tensor


def _before_suppression(subgraph: Subgraph, consumers: dict[Tensor, list[Operator]]) -> set[Operator]:
    """The operators that choose among scores for a non-maximum suppression alone, or take its arguments out of inputs. The scores of boxes to leave
    out are infinite, which no scale stores."""
    found: set[Operator] = set()
    for operator in reversed(subgraph.operators):
        takes = operator.code in PASSING and operator.inputs[PASSED.get(operator.code, 0)] in subgraph.inputs
        if (takes or operator.code in _CHOOSING) and not any(each in subgraph.outputs for each in operator.outputs):
            readers = [reader for each in operator.outputs for reader in consumers.get(each, ())]
            if readers and all(each in found or each.code.startswith("NON_MAX_SUPPRESSION") for each in readers):
                found.add(operator)
    return found


def _before_logarithm(subgraph: Subgraph, consumers: dict[Tensor, list[Operator]]) -> set[Operator]:
    """The operators behind products that only logarithms read in the end. What is rounded to zero would become minus infinity."""
    found: set[Operator] = set()
    for operator in reversed(subgraph.operators):
        if operator.code in WEIGHTS or operator.subgraphs or any(each in subgraph.outputs for each in operator.outputs):
            continue
        readers = [reader for each in operator.outputs for reader in consumers.get(each, ())]
        if readers and all(each in found or each.code == "LOG" for each in readers):
            found.add(operator)
    return found


def _beside_logarithm(
    subgraph: Subgraph, producers: dict[Tensor, Operator], consumers: dict[Tensor, list[Operator]]
) -> set[Operator]:
    """The rest of each relu(x) - log(f(x)), which a softplus is: rounded once, at its end, it is as small, and more exact."""
    found: set[Operator] = set()
    for operator in subgraph.operators:
        if operator.code != "SUB":
            continue
        rectified, logarithm = (producers.get(each) for each in operator.inputs)  # type: ignore[arg-type]
        if rectified is None or rectified.code != "RELU" or logarithm is None or logarithm.code != "LOG":
            continue
        if all(is_private(subgraph, consumers, each.outputs[0]) for each in (rectified, logarithm)):
            found |= {operator, rectified}
    return found


def _form(tensor: Tensor, numbers: Quantization, type_name: str) -> tuple[Tensor, float, int, str]:
    assert numbers.scale is not None and numbers.zero_point is not None
    return tensor, float(numbers.scale[0]), int(numbers.zero_point[0]), type_name


def _flexible(options: bytes) -> dict[str, Any]:
    """The options of a custom op, if they have names."""
    found = flexbuffers.Loads(options) if options else {}
    return found if isinstance(found, dict) else {}


def _on_grid(values: np.ndarray, trained: TrainedRange) -> bool:
    """Whether values are among those that fake quantization with a range leaves."""
    steps = 2**trained.bits - (2 if trained.narrow else 1)
    scale = (trained.high - trained.low) / steps
    if not scale > 0 or values.min(initial=0) < trained.low - scale or values.max(initial=0) > trained.high + scale:
        return False
    quotients = values.astype(np.float64) / scale
    return bool(np.abs(quotients - np.round(quotients)).max(initial=0) < 0.01)


def _without_unused(operators: list[Operator], outputs: Iterable[Tensor]) -> list[Operator]:
    """Drops conversions whose results nobody reads."""
    needed = set(outputs)
    kept = []
    for operator in reversed(operators):
        if operator.code in ("QUANTIZE", "DEQUANTIZE") and not needed.intersection(operator.outputs):
            continue
        kept.append(operator)
        needed.update(each for each in operator.inputs if each is not None)
    return kept[::-1]


def _report(reasons: dict[Operator, str]) -> str:
    lines = [f"Full integer quantization is not possible for {len(reasons)} of the model's operators:"]
    for operator, reason in list(reasons.items())[:10]:
        name = operator.outputs[0].name if operator.outputs else ""
        lines.append(f"  {operator.kind} '{name}': {reason}.")
    if len(reasons) > 10:
        lines.append(f"  and {len(reasons) - 10} more")
    lines.append("  To keep them in floating point, add tf.lite.OpsSet.TFLITE_BUILTINS to target_spec.supported_ops.")
    return "\n".join(lines)
