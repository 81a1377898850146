"""Inputs and outputs of a model in integers."""

from __future__ import annotations

from stoker._src.lite.model import Model, Operator, Quantization, Subgraph, Tensor
from stoker._src.lite.quantization.plan import Plan, QuantizationError
from stoker._src.lite.quantization.schemes import parameters, represented


class Interface:
    """Takes the conversions at the edges of a subgraph away, for callers who pass and take integers."""

    def __init__(self, model: Model, subgraph: Subgraph, plan: Plan) -> None:
        self.model, self.subgraph, self.plan = model, subgraph, plan

    def run(self, input_type: str, output_type: str) -> None:
        if input_type != "FLOAT32":
            self.inputs(input_type)
        if output_type != "FLOAT32":
            self.outputs(output_type)

    def inputs(self, type_name: str) -> None:
        consumers = self.subgraph.consumers()
        for place, tensor in enumerate(self.subgraph.inputs):
            uses = consumers.get(tensor, [])
            if tensor.type != "FLOAT32" or not uses:
                continue
            if any(each.code != "QUANTIZE" for each in uses):
                raise QuantizationError(
                    f"Unsupported input type {type_name} for input tensor '{tensor.name}' of type FLOAT32: it is read in floating point."
                )
            integer = uses[0].outputs[0]
            if type_name == integer.type:
                self.drop(uses[0])
                made = integer
            else:
                made = Tensor(tensor.name, type_name, tensor.shape, None, self.numbers(tensor, integer, type_name))
                uses[0].inputs = [made]
            made.name = tensor.name
            self.subgraph.inputs[place] = made
            self.rename(tensor, made)

    def outputs(self, type_name: str) -> None:
        producers = self.subgraph.producers()
        for place, tensor in enumerate(self.subgraph.outputs):
            producer = producers.get(tensor)
            if tensor.type != "FLOAT32" or (producer is not None and producer.code == "CUSTOM"):
                continue
            if producer is None or producer.code != "DEQUANTIZE":
                raise QuantizationError(
                    f"Unsupported output type {type_name} for output tensor '{tensor.name}' of type FLOAT32: it is computed in floating "
                    "point."
                )
            integer = producer.inputs[0]
            assert integer is not None
            if len(self.subgraph.consumers().get(tensor, [])) == 0 and self.subgraph.outputs.count(tensor) == 1:
                self.drop(producer)
            if type_name == integer.type:
                made = integer
                if made not in self.subgraph.inputs:
                    made.name = tensor.name
            else:
                # No kernel goes from 16 bits to numbers without a sign.
                steps = ["INT8", type_name] if (integer.type, type_name) == ("INT16", "UINT8") else [type_name]
                for step in steps:
                    made = Tensor(tensor.name, step, tensor.shape, None, self.numbers(tensor, integer, step))
                    self.subgraph.operators.append(Operator("QUANTIZE", [integer], [made]))
                    integer = made
                made = integer
            self.subgraph.outputs[place] = made
            self.rename(tensor, made)

    def numbers(self, tensor: Tensor, integer: Tensor, type_name: str) -> Quantization:
        """The scale of a tensor for the caller, whose integers have another type than those inside."""
        numbers = integer.quantization
        assert numbers is not None and numbers.zero_point is not None
        shift = {("INT8", "UINT8"): 128, ("UINT8", "INT8"): -128}.get((integer.type, type_name))
        if shift is not None:
            return Quantization(numbers.scale, numbers.zero_point + shift)
        # The state of a loop has 16 bits.
        low, high = self.plan.ranges.get(tensor) or represented(numbers, integer.type)
        return parameters(low, high, type_name)

    def drop(self, operator: Operator) -> None:
        self.subgraph.operators.remove(operator)

    def rename(self, old: Tensor, new: Tensor) -> None:
        for signature in self.model.signatures:
            if signature.subgraph is self.subgraph:
                for side in (signature.inputs, signature.outputs):
                    for key, tensor in side.items():
                        if tensor is old:
                            side[key] = new
