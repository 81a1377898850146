"""How ops on shapes, slices, indices and lists of tensors are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.interop.values import CONSTANT, HOST, LIST, VARIABLE, Value, dtype_code, is_countable
from stoker._src.interop.writer import Several, Writer, form

# ---- shapes as numbers ------------------------------------------------------------------------------------------


def _sizes(w: Writer, tensor: Tensor, value: Value, dtype: Any) -> Value | None:
    """The shape of a tensor as plain numbers: known sizes as literals, others as `x.shape[i]`."""
    if value.kind == CONSTANT:
        return w.constant(np.array(value.array.shape, dtype.as_numpy_dtype), dtype)
    dims = tensor.static_shape.dims
    if value.kind == HOST:
        return w.constant(np.array([] if value.is_scalar else [len(value.elements)], dtype.as_numpy_dtype), dtype)
    if dims is None:
        return None
    if all(size is not None for size in dims):
        return w.constant(np.array(dims, dtype.as_numpy_dtype), dtype)
    return Value(HOST, dtype, items=[f"{value.code}.shape[{i}]" if d is None else repr(d) for i, d in enumerate(dims)])


@form("Shape", "VariableShape")
def _shape(w: Writer, op: Operation, x: Value) -> Any:
    dtype = op.outputs[0].dtype
    tensor = op.inputs[0]
    if x.kind == VARIABLE and tensor.dtype is dtypes.resource:
        return Value(HOST, dtype, items=[repr(size) for size in w.module.shape_of(x.code)])
    found = _sizes(w, tensor, x, dtype)
    return found if found is not None else f"ops.tensor(list({x.code}.shape), {dtype_code(dtype)}, self.device)"


@form("ShapeN")
def _shape_n(w: Writer, op: Operation, inputs: list[Value]) -> Any:
    found = [_sizes(w, tensor, x, out.dtype) for tensor, x, out in zip(op.inputs, inputs, op.outputs)]
    return found if all(each is not None for each in found) else None


@form("Size")
def _size(w: Writer, op: Operation, x: Value) -> Any:
    if x.kind in (CONSTANT, HOST) or op.inputs[0].static_shape.known:
        sizes = _sizes(w, op.inputs[0], x, op.outputs[0].dtype)
        if sizes is not None and sizes.kind == CONSTANT:
            return w.constant(np.prod(sizes.array, dtype=sizes.array.dtype), op.outputs[0].dtype)
    return w.named_host(op, f"{w.tensor(x)}.numel()")


@form("Rank")
def _rank(w: Writer, op: Operation, x: Value) -> Any:
    rank = op.inputs[0].static_shape.rank
    if x.kind == CONSTANT:
        rank = x.array.ndim
    return w.named_host(op, f"{x.code}.dim()") if rank is None else w.constant(np.int32(rank), dtypes.int32)


@form("Pack")
def _pack(w: Writer, op: Operation, values: list[Value]) -> Any:
    if all(value.is_host and value.is_scalar for value in values):
        return Value(HOST, op.outputs[0].dtype, items=[value.host() for value in values])
    return f"torch.stack([{', '.join(map(w.tensor, values))}], {op.attrs['axis']})"


@form("Unpack")
def _unpack(w: Writer, op: Operation, value: Value) -> Any:
    if value.kind == HOST and value.is_vector:
        return [Value(HOST, tensor.dtype, code) for tensor, code in zip(op.outputs, value.elements)]
    return Several(f"torch.unbind({w.tensor(value)}, {op.attrs['axis']})")


def _concat(w: Writer, op: Operation, values: list[Value], axis: Value) -> Any:
    if all(value.is_host and value.is_vector for value in values):
        return Value(HOST, op.outputs[0].dtype, items=[code for value in values for code in value.elements])
    return f"torch.cat([{', '.join(map(w.tensor, values))}], {axis.host()})"


@form("ConcatV2")
def _concat_v2(w: Writer, op: Operation, values: list[Value], axis: Value) -> Any:
    return _concat(w, op, values, axis)


@form("Concat")
def _concat_old(w: Writer, op: Operation, axis: Value, values: list[Value]) -> Any:
    return _concat(w, op, values, axis)


@form("Range")
def _range(w: Writer, op: Operation, start: Value, limit: Value, delta: Value) -> Any:
    if any(value.kind not in (CONSTANT, HOST) for value in (start, limit, delta)):
        return None  # torch.arange takes no tensors while it is traced
    first, last, step = (value.host() if value.is_host else w.operand(value) for value in (start, limit, delta))
    return f"torch.arange({first}, {last}, {step}, dtype={dtype_code(op.outputs[0].dtype)}, device=self.device)"


@form("Fill")
def _fill(w: Writer, op: Operation, dims: Value, value: Value) -> Any:
    if is_countable(value.dtype) and dims.is_host and dims.is_vector and len(dims.elements) == 1 and value.is_host:
        count = dims.elements[0]
        if count.isdigit() and int(count) <= 16:
            return Value(HOST, value.dtype, items=[value.host()] * int(count))
    if value.kind in (CONSTANT, HOST):
        given = w.operand(value)
        return f"torch.full({dims.host()}, {given}, dtype={dtype_code(value.dtype)}, device=self.device)"
    return f"{w.tensor(value)}.expand({dims.host()})"


@form("ExpandDims")
def _expand_dims(w: Writer, op: Operation, x: Value, axis: Value) -> Any:
    if x.kind == HOST and x.is_scalar:
        return Value(HOST, x.dtype, items=[x.code])
    return f"{w.tensor(x)}.unsqueeze({axis.host()})"


@form("Squeeze")
def _squeeze(w: Writer, op: Operation, x: Value) -> Any:
    if x.kind == HOST and x.is_vector and len(x.elements) == 1:
        return Value(HOST, x.dtype, x.elements[0])
    return f"ops.squeeze({w.tensor(x)}, {list(op.attrs['squeeze_dims'])})"


@form("Reshape")
def _reshape(w: Writer, op: Operation, x: Value, shape: Value) -> Any:
    if x.kind == HOST and shape.kind == CONSTANT:
        wanted = shape.array.tolist()
        if wanted == []:
            return Value(HOST, x.dtype, x.code if x.is_scalar else x.elements[0])
        if len(wanted) == 1:
            return Value(HOST, x.dtype, items=[x.code] if x.is_scalar else x.elements)
    return f"torch.reshape({w.tensor(x)}, {shape.host()})"


@form("IdentityN")
def _identity_n(w: Writer, op: Operation, inputs: list[Value]) -> Any:
    return list(inputs)


@form("Print", "PrintV2")
def _print(w: Writer, op: Operation, x: Value, *rest: Any) -> Any:
    return x if op.outputs else []


@form("Transpose")
def _transpose(w: Writer, op: Operation, x: Value, order: Value) -> Any:
    return f"{w.tensor(x)}.permute({order.host()})"


@form("BroadcastTo")
def _broadcast_to(w: Writer, op: Operation, x: Value, shape: Value) -> str:
    return f"torch.broadcast_to({w.tensor(x)}, {shape.host()})"


@form("Tile")
def _tile(w: Writer, op: Operation, x: Value, multiples: Value) -> str:
    return f"{w.tensor(x)}.repeat({multiples.host()})"


@form("ReverseV2")
def _reverse(w: Writer, op: Operation, x: Value, axes: Value) -> str:
    return f"{w.tensor(x)}.flip({axes.host()})"


@form("ReverseSequence")
def _reverse_sequence(w: Writer, op: Operation, x: Value, lengths: Value) -> str:
    return f"ops.reverse_sequence({w.tensor(x)}, {w.tensor(lengths)}, {op.attrs['seq_dim']}, {op.attrs['batch_dim']})"


@form("Split")
def _split(w: Writer, op: Operation, axis: Value, value: Value) -> Any:
    count = len(op.outputs)
    return Several(f"torch.tensor_split({w.tensor(value)}, {count}, {axis.host()})")


@form("SplitV")
def _split_v(w: Writer, op: Operation, value: Value, sizes: Value, axis: Value) -> Any:
    if sizes.kind == CONSTANT and -1 in sizes.array.tolist():
        known = op.inputs[0].static_shape
        size = None if known.dims is None or axis.kind != CONSTANT else known.dims[int(axis.array)]
        if size is None:
            return None
        rest = size - sum(each for each in sizes.array.tolist() if each >= 0)
        return Several(
            f"torch.split({w.tensor(value)}, {[rest if s < 0 else s for s in sizes.array.tolist()]}, {axis.host()})"
        )
    return Several(f"torch.split({w.tensor(value)}, {sizes.host()}, {axis.host()})")


# ---- slices -----------------------------------------------------------------------------------------------------


@form("Slice")
def _slice(w: Writer, op: Operation, x: Value, begin: Value, size: Value) -> Any:
    if x.kind == HOST and x.is_vector and begin.kind == CONSTANT and size.kind == CONSTANT:
        start, length = int(begin.array[0]), int(size.array[0])
        return Value(HOST, x.dtype, items=x.elements[start : len(x.elements) if length < 0 else start + length])
    return f"ops.cut({w.tensor(x)}, {begin.host()}, {size.host()})"


@form("StridedSlice")
def _strided_slice(w: Writer, op: Operation, x: Value, begin: Value, end: Value, strides: Value) -> Any:
    masks = {name: op.attrs[f"{name}_mask"] for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    if not all(each.is_host and each.is_vector for each in (begin, end, strides)):
        return None
    firsts, lasts, steps = begin.elements, end.elements, strides.elements
    if x.kind == HOST and x.is_vector and len(firsts) == 1 and not masks["new_axis"] and not masks["ellipsis"]:
        found = _host_slice(x.elements, firsts[0], lasts[0], steps[0], masks)
        if found is not None:
            return Value(HOST, x.dtype, *found)
    if any(not step.lstrip("-").isdigit() for step in steps):
        return None
    parts, reversing = [], False
    for i, (first, last, step) in enumerate(zip(firsts, lasts, steps)):
        bit = 1 << i
        if masks["ellipsis"] & bit:
            parts.append("...")
        elif masks["new_axis"] & bit:
            parts.append("None")
        elif masks["shrink_axis"] & bit:
            parts.append(first)
        else:
            first = "" if masks["begin"] & bit else first
            last = "" if masks["end"] & bit else last
            reversing |= int(step) < 0
            parts.append((first, last, step))
    if reversing:
        spelled = [
            "(" + ", ".join(each or "None" for each in part) + ")" if isinstance(part, tuple) else part
            for part in parts
        ]
        return f"ops.strided_slice({w.tensor(x)}, [{', '.join(spelled)}])"
    spelled = [_colons(*part) if isinstance(part, tuple) else part for part in parts]
    return f"{w.tensor(x)}[{', '.join(spelled)}]" if spelled else w.tensor(x)


def _colons(first: str, last: str, step: str) -> str:
    first = "" if first == "0" else first
    return f"{first}:{last}" + ("" if step == "1" else f":{step}")


def _host_slice(items: list[str], first: str, last: str, step: str, masks: dict[str, int]) -> Any:
    try:
        start = None if masks["begin"] else int(first)
        stop = None if masks["end"] else int(last)
        stride = int(step)
    except ValueError:
        return None
    if masks["shrink_axis"]:
        return (items[int(first)],)
    return "", items[start:stop:stride]


# ---- indices ----------------------------------------------------------------------------------------------------


@form("Gather", "GatherV2", "ResourceGather")
def _gather(w: Writer, op: Operation, params: Value, indices: Value, *axis: Value) -> Any:
    place = axis[0].host() if axis else "0"
    batch_dims = op.attrs.get("batch_dims", 0)
    if params.kind in (HOST, CONSTANT) and params.is_host and params.is_vector and indices.kind == CONSTANT:
        chosen = indices.array.tolist()
        if isinstance(chosen, int):
            return Value(HOST, op.outputs[0].dtype, params.elements[chosen])
        if indices.array.ndim == 1:
            return Value(HOST, op.outputs[0].dtype, items=[params.elements[i] for i in chosen])
    table = op.inputs[0]
    rank = len(w.module.shape_of(params.code)) if params.kind == VARIABLE else table.static_shape.rank
    if rank == 2 and place == "0" and not batch_dims and op.outputs[0].dtype.is_floating:
        return f"F.embedding({w.tensor(indices)}, {w.tensor(params)})"
    if indices.is_host and indices.is_scalar:
        return f"{w.tensor(params)}.select({place}, {indices.host()})"
    rest = f", batch_dims={batch_dims}" if batch_dims else ""
    return f"ops.gather({w.tensor(params)}, {w.tensor(indices)}, {place}{rest})"


@form("GatherNd", "ResourceGatherNd")
def _gather_nd(w: Writer, op: Operation, params: Value, indices: Value) -> str | None:
    if op.attrs.get("bad_indices_policy"):
        return None
    return f"ops.gather_nd({w.tensor(params)}, {w.tensor(indices)}, {op.attrs.get('batch_dims', 0)})"


@form("ScatterNd")
def _scatter_nd(w: Writer, op: Operation, indices: Value, updates: Value, shape: Value) -> str:
    return f"ops.scatter_nd({w.tensor(indices)}, {w.tensor(updates)}, {shape.host()})"


@form("TensorScatterAdd", "TensorScatterUpdate")
def _tensor_scatter(w: Writer, op: Operation, target: Value, indices: Value, updates: Value) -> str:
    function = "scatter_nd_add" if op.type == "TensorScatterAdd" else "scatter_nd_update"
    return f"ops.{function}({w.tensor(target)}, {w.tensor(indices)}, {w.tensor(updates)})"


@form("TensorScatterSub")
def _tensor_scatter_sub(w: Writer, op: Operation, target: Value, indices: Value, updates: Value) -> str:
    return f"ops.scatter_nd_add({w.tensor(target)}, {w.tensor(indices)}, -{w.tensor(updates)})"


@form("InvertPermutation")
def _invert_permutation(w: Writer, op: Operation, x: Value) -> str:
    return f"torch.argsort({w.tensor(x)}).to({dtype_code(op.outputs[0].dtype)})"


@form("DynamicPartition")
def _dynamic_partition(w: Writer, op: Operation, data: Value, partitions: Value) -> Any:
    return Several(f"ops.dynamic_partition({w.tensor(data)}, {w.tensor(partitions)}, {len(op.outputs)})")


@form("Where")
def _where(w: Writer, op: Operation, condition: Value) -> str:
    return f"torch.nonzero({w.tensor(condition)})"


@form("OneHot")
def _one_hot(w: Writer, op: Operation, indices: Value, depth: Value, on: Value, off: Value) -> str:
    rest = f"{depth.host()}, {w.operand(on)}, {w.operand(off)}, {op.attrs['axis']}, {dtype_code(op.outputs[0].dtype)}"
    return f"ops.one_hot({w.tensor(indices)}, {rest})"


# ---- pads and blocks --------------------------------------------------------------------------------------------


@form("Pad")
def _pad(w: Writer, op: Operation, x: Value, paddings: Value) -> str:
    return f"ops.pad({w.tensor(x)}, {paddings.host()})"


@form("PadV2")
def _pad_v2(w: Writer, op: Operation, x: Value, paddings: Value, value: Value) -> str:
    return f"ops.pad({w.tensor(x)}, {paddings.host()}, {w.operand(value)})"


@form("MirrorPad")
def _mirror_pad(w: Writer, op: Operation, x: Value, paddings: Value) -> str:
    mode = op.attrs["mode"]
    return f"ops.mirror_pad({w.tensor(x)}, {paddings.host()}, {mode in ('SYMMETRIC', b'SYMMETRIC')})"


@form("SpaceToBatchND")
def _space_to_batch(w: Writer, op: Operation, x: Value, block: Value, paddings: Value) -> str:
    return f"ops.space_to_batch({w.tensor(x)}, {block.host()}, {paddings.host()})"


@form("BatchToSpaceND")
def _batch_to_space(w: Writer, op: Operation, x: Value, block: Value, crops: Value) -> str:
    return f"ops.batch_to_space({w.tensor(x)}, {block.host()}, {crops.host()})"


@form("DepthToSpace", "SpaceToDepth")
def _depth_and_space(w: Writer, op: Operation, x: Value) -> str | None:
    data_format = op.attrs["data_format"]
    if data_format not in ("NHWC", "NCHW"):
        return None
    function = "depth_to_space" if op.type == "DepthToSpace" else "space_to_depth"
    return f"ops.{function}({w.tensor(x)}, {op.attrs['block_size']}, {data_format == 'NHWC'})"


# ---- lists ------------------------------------------------------------------------------------------------------


def _made(w: Writer, op: Operation, code: str, dtype: Any = dtypes.variant) -> Value:
    name = w.local(op.name)
    w.line(f"{name} = {code}", op.name)
    return Value(LIST, dtype, name)


def _element(w: Writer, op: Operation, shape: Value) -> str:
    return f"{shape.host()}, {dtype_code(op.attrs['element_dtype'])}, self.device"


@form("TensorListReserve", "EmptyTensorList")
def _list_reserve(w: Writer, op: Operation, shape: Value, count: Value) -> Value:
    return _made(w, op, "[]" if op.type == "EmptyTensorList" else f"[None] * {count.host()}")


@form("TensorListFromTensor")
def _list_from_tensor(w: Writer, op: Operation, x: Value, shape: Value) -> Value:
    return _made(w, op, f"list({w.tensor(x)}.unbind(0))")


@form("TensorListSetItem")
def _list_set(w: Writer, op: Operation, items: Value, index: Value, item: Value) -> Value:
    return _made(w, op, f"ops.list_set({items.code}, {index.host()}, {w.tensor(item)})")


@form("TensorListGetItem")
def _list_get(w: Writer, op: Operation, items: Value, index: Value, shape: Value) -> str:
    return f"ops.list_get({items.code}, {index.host()}, {_element(w, op, shape)})"


@form("TensorListPushBack")
def _list_push(w: Writer, op: Operation, items: Value, item: Value) -> Value:
    return _made(w, op, f"[*{items.code}, {w.tensor(item)}]")


@form("TensorListStack")
def _list_stack(w: Writer, op: Operation, items: Value, shape: Value) -> str:
    return f"ops.list_stack({items.code}, {_element(w, op, shape)})"


@form("TensorListGather")
def _list_gather(w: Writer, op: Operation, items: Value, indices: Value, shape: Value) -> str:
    return f"ops.list_gather({items.code}, {indices.host()}, {_element(w, op, shape)})"


@form("TensorListLength")
def _list_length(w: Writer, op: Operation, items: Value) -> Value:
    return w.named_host(op, f"len({items.code})")


@form("TensorListConcatV2", "TensorListConcat")
def _list_concat(w: Writer, op: Operation, items: Value, *rest: Any) -> list[Value]:
    name = w.local(op.name)
    w.line(f"{name} = torch.cat({items.code}, 0)", op.name)
    lengths = f"ops.tensor(ops.list_lengths({items.code}), torch.int64, self.device)"
    return [Value("tensor", op.outputs[0].dtype, name), Value("tensor", dtypes.int64, lengths)]


# ---- TensorArrays of 1.x: the flow stands for the list -----------------------------------------------------------


def _array_element(w: Writer, op: Operation) -> str:
    shape = op.attrs.get("element_shape")
    dims = () if shape is None or shape.dims is None else shape.dims
    return f"{[-1 if d is None else d for d in dims]}, {dtype_code(op.attrs['dtype'])}, self.device"


@form("TensorArrayV3")
def _array(w: Writer, op: Operation, size: Value) -> list[Value]:
    made = _made(w, op, f"[None] * {size.host()}", dtypes.float32)
    return [Value("tensor", dtypes.resource, "None"), made]


@form("TensorArrayWriteV3")
def _array_write(w: Writer, op: Operation, handle: Value, index: Value, item: Value, flow: Value) -> Value:
    return _made(w, op, f"ops.list_set({flow.code}, {index.host()}, {w.tensor(item)})", dtypes.float32)


@form("TensorArrayReadV3")
def _array_read(w: Writer, op: Operation, handle: Value, index: Value, flow: Value) -> str:
    return f"ops.list_get({flow.code}, {index.host()}, [], {dtype_code(op.attrs['dtype'])}, self.device)"


@form("TensorArrayGatherV3")
def _array_gather(w: Writer, op: Operation, handle: Value, indices: Value, flow: Value) -> str:
    return f"ops.list_gather({flow.code}, {indices.host()}, {_array_element(w, op)})"


@form("TensorArrayScatterV3")
def _array_scatter(w: Writer, op: Operation, handle: Value, indices: Value, value: Value, flow: Value) -> Value:
    return _made(w, op, f"ops.list_scatter({flow.code}, {indices.host()}, {w.tensor(value)})", dtypes.float32)


@form("TensorArraySizeV3")
def _array_size(w: Writer, op: Operation, handle: Value, flow: Value) -> Value:
    return w.named_host(op, f"len({flow.code})")
