"""Defines the ops of an optimizer's update from one rule.

    @update("Momentum(var, accum; lr, grad, momentum)", sparse=True, use_nesterov=False)
    def momentum(var, accum, lr, grad, momentum, *, use_nesterov): ...

defines ApplyMomentum (reference variables), ResourceApplyMomentum, SparseApplyMomentum and ResourceSparseApplyMomentum. The
rule is written once, on lists of tensors. The inputs before the semicolon are variables that it updates in place. `grad` (or
`delta`) is a list of the same length, and all other inputs are plain numbers. The dense ops of one step that share these
numbers run as one call of the rule, and so do the sparse ops, which call it on the rows that their indices select.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from stoker._src.base.dtypes import INDEX, NUMERIC
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import STATEFUL, WRITES, OpDefinition, define
from stoker._src.graph.planning import RowsOfProduct
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support import handles, table_rows
from stoker._src.ops.training import updates_cuda
from stoker._src.ops.variables.state_ops import VariableState

Rule = Callable[..., None]
RowLoop = tuple[int, tuple[float, ...]]  # a rule of native/updates.c and its numbers
Tensors = list[torch.Tensor]

_GRADIENTS = ("grad", "delta")
_REAL = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_COMPLEX = (torch.complex64, torch.complex128)
# The hyperparameters whose sign TensorFlow checks, for the ops where it does (`checked_signs`).
_SIGNS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "lr": ("positive", lambda x: bool(x > 0)),
    "l1": ("non-negative", lambda x: bool(x >= 0)),
    "l2": ("non-negative", lambda x: bool(x >= 0)),
    "l2_shrinkage": ("non-negative", lambda x: bool(x >= 0)),
    "lr_power": ("non-positive", lambda x: bool(x <= 0)),
}
_WIDE_NUMBERS = ("global_step",)  # int64 for every dtype of the variable


@dataclass(frozen=True)
class UpdateOps:
    """The ops of one rule. An entry is None where TensorFlow has no such op."""

    dense: OpDefinition | None
    resource_dense: OpDefinition
    sparse: OpDefinition | None
    resource_sparse: OpDefinition | None


def update(
    spelling: str,
    *,
    sparse: bool | Rule = False,
    row_loop: Callable[..., RowLoop | None] | None = None,
    reference: bool = True,
    complex_numbers: bool = True,
    device_numbers: tuple[str, ...] = (),
    checked_signs: tuple[str, ...] = (),
    early_gradient: bool = False,
    late_number: str = "",
    **attrs: Any,
) -> Callable[[Rule], UpdateOps]:
    """Defines the ops of a rule from a signature `Name(variables; numbers and grad)`.

    Args:
        spelling: the op's name and inputs, in TensorFlow's order.
        sparse: whether to define sparse ops too, or a separate rule for them if TensorFlow rounds rows differently.
        row_loop: chooses, by the rule's numbers, the native loop that updates float32 rows in place, if there is one.
        reference: whether to define ops for reference variables.
        complex_numbers: whether the rule supports complex numbers.
        device_numbers: numbers that change with every step. The rule also accepts them as tensors, because fetching them from
            a GPU would block the host.
        checked_signs: "dense", "sparse" or both: the ops in which TensorFlow rejects numbers of the wrong sign.
        early_gradient: whether the dense op on resources checks the gradient's shape while a graph is built.
        late_number: the last input, if its rank is only checked when the op runs.
        **attrs: attributes other than T, Tindices and use_locking, with their defaults.
    """
    name, _, inputs = spelling.rstrip(")").partition("(")
    variables, others = ([each.strip() for each in part.split(",")] for part in inputs.split(";"))

    def register(rule: Rule) -> UpdateOps:
        def make(prefix: str, *, resource: bool, rows: bool) -> OpDefinition:
            used = sparse if rows and callable(sparse) else rule
            strict = ("sparse" if rows else "dense") in checked_signs
            caller = _Caller(prefix + name, used, variables, others, complex_numbers=complex_numbers, strict=strict)
            caller.row_loop = row_loop
            late = resource and (rows or not early_gradient)
            made = _define(caller, resource=resource, rows=rows, late=late, late_number=late_number, attrs=attrs)
            made.planning.device_numbers = frozenset(device_numbers)
            if rows:
                made.planning.on_distinct = caller.sparse_distinct, caller.sparse_distinct_many
                made.planning.padded = caller.skips_padding
            return made

        return UpdateOps(
            make("Apply", resource=False, rows=False) if reference else None,
            make("ResourceApply", resource=True, rows=False),
            make("SparseApply", resource=False, rows=True) if sparse and reference else None,
            make("ResourceSparseApply", resource=True, rows=True) if sparse else None,
        )

    return register


def _define(
    caller: _Caller, *, resource: bool, rows: bool, late: bool, late_number: str, attrs: dict[str, Any]
) -> OpDefinition:
    parts = [f"{each}: resource" if resource else f"{each}: Ref(T)" for each in caller.variables]
    for each in caller.others:
        if each in _GRADIENTS:
            parts += ["grad: T", "indices: Tindices"] if rows else [f"{each}: T"]
        else:
            parts.append(f"{each}: host {'int64' if each in _WIDE_NUMBERS else 'T'}")
    indexing = {"Tindices": INDEX} if rows else {}
    definition = define(
        f"{caller.name}({', '.join(parts)}) -> ({'' if resource else 'out: Ref(T)'})",
        WRITES | STATEFUL,
        T=NUMERIC,
        **indexing,
        use_locking=False,
        **attrs,
    )
    kernel = caller.sparse if rows else caller.one
    definition.kernel(_with_attributes(kernel, caller.rule))
    unchecked = len(parts) - 1 if caller.others[-1] == late_number else None
    definition.shape(_shape_rule(caller, rows=rows, resource=resource, late=late, unchecked=unchecked))
    definition.batch(_batch_key(definition))(caller.sparse_many if rows else caller.many)
    if not rows:
        definition.planning.takes_parts = caller.gradient_at, caller.one_in_parts, caller.many_in_parts
    return definition


def _with_attributes(kernel: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
    """Wraps `kernel` in a function that declares the keyword-only attributes of `rule`."""

    def declared(*arguments: Any, **attributes: Any) -> Any:
        return kernel(*arguments, **attributes)

    keywords = [p for p in inspect.signature(rule).parameters.values() if p.kind is p.KEYWORD_ONLY]
    parameters = [inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL), *keywords]
    declared.__signature__ = inspect.Signature(parameters)
    declared.__name__ = f"{rule.__name__}_kernel"
    return declared


class _Caller:
    """Checks the inputs and calls a rule: for one dense op, for many, or for the rows of a sparse op."""

    def __init__(
        self, name: str, rule: Rule, variables: list[str], others: list[str], *, complex_numbers: bool, strict: bool
    ) -> None:
        self._strict = strict
        self.name, self.rule, self.variables, self.others = name, rule, variables, others
        self._dtypes = (*_REAL, *_COMPLEX) if complex_numbers else _REAL
        self.row_loop: Callable[..., RowLoop | None] | None = None
        self.count = len(variables)
        self.gradient_at = next(i for i, each in enumerate(others) if each in _GRADIENTS) + self.count

    def one(self, *inputs: Any, **attributes: Any) -> VariableState:
        values = [variable.read() for variable in inputs[: self.count]]
        gradient = inputs[self.gradient_at]
        self._check_dtype(gradient)
        for value in values:
            if value.shape != gradient.shape or value.dtype is not gradient.dtype:
                raise self._misfit(inputs[: self.count], gradient)
        numbers = list(inputs[self.count :])
        self._check_numbers(numbers, attributes)
        numbers[self.gradient_at - self.count] = [gradient]
        self.rule(*[[value] for value in values], *numbers, **attributes)
        return inputs[0]

    def many(self, *columns: Any, **attributes: Any) -> None:
        """Runs many ops at once. `columns` has a list for each input of the op except the numbers, which all ops share."""
        count, at = self.count, self.gradient_at
        states, gradients = columns[:count], columns[at]
        numbers = list(columns[count:])
        self._check_dtype(gradients[0])
        self._check_numbers(numbers, attributes)
        block = states[0][0].block
        values = [[variable.value for variable in column] for column in states]
        if block is not None and block.holds(values) and block.fits(gradients):
            values, numbers[at - count] = block.merged(values, gradients)
        else:
            values = [[variable.read() for variable in column] for column in states]
            for column in values:
                for i, (value, gradient) in enumerate(zip(column, gradients)):
                    if value.shape != gradient.shape or value.dtype is not gradient.dtype:
                        raise self._misfit([each[i] for each in states], gradient)
        self.rule(*values, *numbers, **attributes)
        if block is None:
            states[0][0].block = Block.of(states)

    def one_in_parts(self, product: RowsOfProduct, *inputs: Any, **attributes: Any) -> VariableState:
        """Runs an op whose gradient is given as the factors of a product, some rows of it at a time."""
        count, at = self.count, self.gradient_at
        values = [variable.read() for variable in inputs[:count]]
        numbers = list(inputs[count:])
        for begin in range(0, product.rows, product.at_once):
            part = product.kernel(*inputs[at], begin, min(begin + product.at_once, product.rows))
            if begin == 0:
                self._check_dtype(part)
                self._check_numbers([[] if i + count == at else each for i, each in enumerate(numbers)], attributes)
                whole = part.new_empty(()).expand(
                    product.rows, *part.shape[1:]
                )  # stands for the gradient, without memory
                if any(value.shape != whole.shape or value.dtype is not whole.dtype for value in values):
                    raise self._misfit(inputs[:count], whole)
            numbers[at - count] = [part]
            self.rule(*[[value[begin : begin + len(part)]] for value in values], *numbers, **attributes)
        return inputs[0]

    def many_in_parts(self, products: dict[int, RowsOfProduct], *columns: Any, **attributes: Any) -> None:
        """Runs many ops at once, some of which are given the factors of their gradients."""
        of_nodes = {*range(self.count), self.gradient_at}
        for i, product in products.items():
            row = [column[i] if at in of_nodes else column for at, column in enumerate(columns)]
            self.one_in_parts(product, *row, **attributes)
        rest = [i for i in range(len(columns[0])) if i not in products]
        if rest:
            chosen = [[column[i] for i in rest] if at in of_nodes else column for at, column in enumerate(columns)]
            self.many(*chosen, **attributes)

    def sparse(self, *inputs: Any, **attributes: Any) -> VariableState:
        at = self.gradient_at
        columns = [[given] if i < self.count or i in (at, at + 1) else given for i, given in enumerate(inputs)]
        self.sparse_many(*columns, **attributes)
        return inputs[0]

    def sparse_many(self, *columns: Any, **attributes: Any) -> None:
        """Runs many sparse ops at once; see `many`."""
        count, at = self.count, self.gradient_at
        states, gradients, indices = columns[:count], columns[at], columns[at + 1]
        numbers = [*columns[count:at], gradients, *columns[at + 2 :]]
        self._check_dtype(gradients[0])
        self._check_numbers(numbers, attributes)
        values = [[variable.read() for variable in column] for column in states]
        for i, (gradient, rows) in enumerate(zip(gradients, indices)):
            self._check_rows([column[i] for column in states], [column[i] for column in values], gradient, rows)
        rest = self._left_by_row_loop(values, numbers, gradients, indices, attributes)
        if not rest:
            return
        if len(rest) < len(indices):
            states, values = ([[column[i] for i in rest] for column in columns] for columns in (states, values))
            gradients, indices = ([column[i] for i in rest] for column in (gradients, indices))
        if len(set(map(id, states[0]))) == len(states[0]):
            selection = table_rows.Selection(values, indices)
            flats = selection.taken()
            if flats is not None:
                numbers[at - count] = [_flattened(gradients)]
                self.rule(*[[flat] for flat in flats], *numbers, **attributes)
                selection.put(flats)
                return
        for i, (gradient, chosen_rows) in enumerate(zip(gradients, indices)):
            tables = [column[i] for column in values]
            for rows, chosen in distinct_rows(chosen_rows.long(), len(tables[0]), self.name):
                parts = [[_rows_of(table, rows)] for table in tables]
                numbers[at - count] = [gradient if chosen is None else gradient.index_select(0, chosen)]
                self.rule(*parts, *numbers, **attributes)
                for table, part in zip(tables, parts):
                    table.index_copy_(0, rows, part[0])

    def _left_by_row_loop(
        self,
        values: list[Tensors],
        numbers: list[Any],
        gradients: Tensors,
        indices: Tensors,
        attributes: dict[str, Any],
    ) -> list[int]:
        """Updates the rows of tables in place, natively. Returns the positions of the tables that this does not work for."""
        every = list(range(len(indices)))
        if self.row_loop is None or table_rows.updates is None or values[0][0].dtype is not torch.float32:
            return every
        loop = self.row_loop(*numbers, **attributes)
        if loop is None:
            return every
        return [
            i for i in every if not table_rows.update(*loop, [column[i] for column in values], gradients[i], indices[i])
        ]

    def sparse_distinct(self, *inputs: Any, **attributes: Any) -> VariableState:
        """Like `sparse` for rows that are known to be distinct. Rows out of range are skipped; nothing waits for the device."""
        count, at = self.count, self.gradient_at
        tables, gradient, indices = [variable.read() for variable in inputs[:count]], inputs[at], inputs[at + 1]
        self._check_dtype(gradient)
        self._check_rows(inputs[:count], tables, gradient, indices)
        if not indices.numel() or not tables[0].numel():
            return inputs[0]
        if gradient.is_cuda and self._in_one_kernel(tables, inputs, attributes):
            return inputs[0]
        rows = indices.long()
        bad = (rows < 0) | (rows >= len(tables[0]))
        # A row to be skipped repeats the first one that is not: both write the same numbers.
        chosen = torch.arange(len(rows), device=rows.device)
        chosen = torch.where(bad, torch.argmin(bad.to(torch.uint8)), chosen)
        rows = rows.index_select(0, chosen).clamp_(0, len(tables[0]) - 1)
        numbers = [*inputs[count:at], [gradient.index_select(0, chosen)], *inputs[at + 2 :]]
        self._check_numbers(numbers, attributes)
        parts = [[table.index_select(0, rows)] for table in tables]
        self.rule(*parts, *numbers, **attributes)
        none = bad.index_select(0, chosen).reshape(
            -1, *[1] * (gradient.dim() - 1)
        )  # true only if all are to be skipped
        for table, part in zip(tables, parts):
            table.index_copy_(0, rows, torch.where(none, table.index_select(0, rows), part[0]))
        return inputs[0]

    def _in_one_kernel(self, tables: Tensors, inputs: Any, attributes: dict[str, Any]) -> bool:
        """Updates distinct rows on a GPU by one kernel. Returns False if there is none for this rule."""
        count, at = self.count, self.gradient_at
        if self.row_loop is None or table_rows.updates is None:
            return False
        numbers = [*inputs[count:at], [inputs[at]], *inputs[at + 2 :]]
        on_device = [i for i, number in enumerate(numbers) if isinstance(number, torch.Tensor)]
        rate = numbers[on_device[0]] if on_device else None
        if len(on_device) > 1 or any(self.others[i] != "lr" for i in on_device):
            return False
        for i in on_device:
            numbers[i] = 1.0  # stands for the rate, which the host does not know
        self._check_numbers(numbers, attributes)
        loop = self.row_loop(*numbers, **attributes)
        return loop is not None and updates_cuda.update(*loop, rate, tables, inputs[at], inputs[at + 1])

    def sparse_distinct_many(self, *columns: Any, **attributes: Any) -> None:
        lists = {*range(self.count), self.gradient_at, self.gradient_at + 1}
        for i in range(len(columns[0])):
            self.sparse_distinct(*[c[i] if at in lists else c for at, c in enumerate(columns)], **attributes)

    def skips_padding(self, op: Operation, padded: list[bool], shape_of: Any) -> list[bool] | None:
        at = self.gradient_at
        return [False] * len(op.outputs) if padded[at] and padded[at + 1] and sum(padded) == 2 else None

    def _check_dtype(self, gradient: torch.Tensor) -> None:
        """Rejects dtypes without a kernel. As in TensorFlow, the op itself allows all numeric dtypes."""
        if gradient.dtype not in self._dtypes:
            found, known = (
                ", ".join(str(each).removeprefix("torch.") for each in group)
                for group in ([gradient.dtype], self._dtypes)
            )
            raise InvalidArgumentError(
                None, None, f"No OpKernel was registered to support Op '{self.name}' with T={found}: there are {known}."
            )

    def _check_numbers(self, numbers: list[Any], attributes: dict[str, Any]) -> None:
        for each, number in zip(self.others, numbers):
            if self._strict and each in _SIGNS and not isinstance(number, list):
                # With `multiply_linear_by_lr` the rule does not divide by the rate, so a rate of 0 is allowed.
                sign, holds = _SIGNS["l1" if each == "lr" and attributes.get("multiply_linear_by_lr") else each]
                if not holds(number):
                    raise InvalidArgumentError(None, None, f"{self.name}: {each} is not a {sign} scalar: {number}")
            if each not in _GRADIENTS and isinstance(number, list):
                raise InvalidArgumentError(
                    None, None, f"{self.name}: {each} is not a scalar: it has {len(number)} elements."
                )

    def _check_rows(self, variables: Any, values: Tensors, gradient: torch.Tensor, indices: torch.Tensor) -> None:
        if indices.dim() != 1:
            raise InvalidArgumentError(
                None, None, f"{self.name}: indices must be one-dimensional, but have shape {Shape(indices.shape)}."
            )
        first = values[0]
        if first.dim() < 1:
            raise InvalidArgumentError(None, None, f"{self.name}: var must be at least 1 dimensional.")
        shape, dtype = first.shape, gradient.dtype
        for value in values:
            if value.shape != shape or value.dtype is not dtype:
                raise self._misfit(variables, gradient)
        if gradient.shape != (indices.shape[0], *shape[1:]):
            raise InvalidArgumentError(
                None,
                None,
                f"{self.name}: grad must be the same size as indices in the first dimension and as var in the others: "
                f"grad has shape {Shape(gradient.shape)}, indices {Shape(indices.shape)}, var {Shape(first.shape)}.",
            )

    def _misfit(self, variables: Any, gradient: torch.Tensor) -> InvalidArgumentError:
        def described(value: torch.Tensor) -> str:
            return f"{str(value.dtype).removeprefix('torch.')} {Shape(value.shape)}"

        found = ", ".join(
            f"{label} ({variable.name}) {described(variable.read())}"
            for label, variable in zip(self.variables, variables)
        )
        return InvalidArgumentError(
            None,
            None,
            f"{self.name}: var and its gradient do not have the same shape and dtype: {found}, "
            f"gradient {described(gradient)}.",
        )


class Block:
    """Small variables that share one piece of memory, so that a rule updates all of them in one pass.

    The variables keep their own tensors, which become views. On the CPU, every small tensor costs a dispatch. CUDA has
    kernels for lists of tensors and needs no blocks.
    """

    SMALL = 1 << 14  # elements: above this size the dispatch is cheap compared with the work
    WORTHWHILE = 8  # the number of small variables from which a block pays off

    def __init__(self, views: list[Tensors], small: list[int], flats: Tensors) -> None:
        self._views = views  # for each column, its variables' values when the block was made
        self._small, self._flats = small, flats
        self._chosen = frozenset(small)
        self._shapes = [view.shape for view in views[0]] if views else []

    @classmethod
    def of(cls, columns: tuple[list[VariableState], ...]) -> Block:
        """Moves the small variables into a block. Returns an empty block if there are too few of them."""
        rows = list(zip(*columns))
        small = [i for i, row in enumerate(rows) if cls._movable(row)]
        if len(small) < cls.WORTHWHILE:
            return cls([], [], [])
        flats = []
        for column in columns:
            members = [column[i] for i in small]
            flat = torch.cat([member.value.reshape(-1) for member in members])
            parts = flat.split([member.value.numel() for member in members])
            for member, part in zip(members, parts):
                member.value = part.view(member.value.shape)
            flats.append(flat)
        block = cls([[variable.value for variable in column] for column in columns], small, flats)
        for i in small:
            for variable in rows[i]:
                variable.block = block
        return block

    @classmethod
    def _movable(cls, row: tuple[VariableState, ...]) -> bool:
        first = row[0].value
        return all(
            variable.block is None
            and variable.value is not None
            and variable.value.device.type == "cpu"
            and variable.value.dtype is first.dtype
            and variable.value.shape == first.shape
            and variable.value.numel() <= cls.SMALL
            for variable in row
        )

    def holds(self, values: list[Tensors]) -> bool:
        """Whether these are the block's variables and still use its memory."""
        return len(values) == len(self._views) and all(
            len(now) == len(then) and all(map(operator.is_, now, then)) for now, then in zip(values, self._views)
        )

    def fits(self, gradients: Tensors) -> bool:
        return [gradient.shape for gradient in gradients] == self._shapes

    def merged(self, values: list[Tensors], gradients: Tensors) -> tuple[list[Tensors], Tensors]:
        """The arguments for a rule: the block's memory replaces its small variables, and their gradients are concatenated."""
        joined = torch._C._nn.flatten_dense_tensors([gradients[i] for i in self._small])  # type: ignore[attr-defined]
        if len(self._small) == len(gradients):
            return [[flat] for flat in self._flats], [joined]
        others = [i for i in range(len(gradients)) if i not in self._chosen]
        return (
            [[flat, *[column[i] for i in others]] for flat, column in zip(self._flats, values)],
            [joined, *[gradients[i] for i in others]],
        )


def _flattened(tensors: Tensors) -> torch.Tensor:
    """The elements of all tensors in one vector."""
    return tensors[0].reshape(-1) if len(tensors) == 1 else torch.cat([tensor.reshape(-1) for tensor in tensors])


def _rows_of(table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    taken = table_rows.gather(table, rows)
    return table.index_select(0, rows) if taken is None else taken


def distinct_rows(indices: torch.Tensor, size: int, name: str) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """Groups positions in `indices` so that no row occurs twice in a group. The groups are in order of application.

    Applying the groups in order is equivalent to TensorFlow's loop over all positions. Each entry is (rows, positions of
    their updates). None as positions means all of them.

    Raises:
        InvalidArgumentError: an index is out of range.
    """
    total = indices.numel()
    if total == 0:
        return []
    if table_rows.all_distinct(indices, size):
        return [(indices, None)]
    ordered, positions = torch.sort(indices, stable=True)
    low, high = int(ordered[0]), int(ordered[-1])
    if low < 0 or high >= size:
        bad = low if low < 0 else high
        offset = int((indices == bad).nonzero()[0])
        raise InvalidArgumentError(
            None, None, f"{name}: Index {bad} at offset {offset} in indices is out of range [0, {size})."
        )
    starts = torch.ones(total, dtype=torch.bool, device=indices.device)
    torch.ne(ordered[1:], ordered[:-1], out=starts[1:])
    if bool(starts.all()):
        return [(indices, None)]
    place = torch.arange(total, device=indices.device)
    rank = place - torch.where(starts, place, 0).cummax(0).values  # the number of earlier occurrences of the row
    by_rank = torch.sort(rank, stable=True).indices
    groups = []
    for part in by_rank.split(torch.bincount(rank).tolist()):
        groups.append((ordered.index_select(0, part), positions.index_select(0, part)))
    return groups


def _shape_rule(
    caller: _Caller, *, rows: bool, resource: bool, late: bool, unchecked: int | None
) -> Callable[..., Any]:
    count, gradient_at = caller.count, caller.gradient_at

    def shape(*shapes: Shape, op: Operation) -> Any:
        variables = [handles.handle_shape(t) for t in op._inputs[:count]] if resource else list(shapes[:count])
        merged = variables[0]
        for each in variables[1:]:
            merged = merged.merge(each)
        gradient = shapes[gradient_at]
        if rows:
            shapes[gradient_at + 1].of_rank(1)
            merged = merged.at_least(1)
        if late:
            pass  # as in TensorFlow, the gradient is checked when the op runs
        elif rows:
            if gradient.rank is not None and merged.rank is not None:
                gradient.merge(Shape((shapes[gradient_at + 1][0], *merged[1:])))
        else:
            merged = merged.merge(gradient)
        for i in range(count, len(shapes)):
            if i != gradient_at and not (rows and i == gradient_at + 1) and i != unchecked:
                shapes[i].of_rank(0)
        return () if resource else merged

    return shape


def _batch_key(definition: OpDefinition) -> Callable[[Operation], Any]:
    numbers = [i for i, arg in enumerate(definition.inputs) if arg.host]

    def key(op: Operation) -> Any:
        shared = tuple(_same_number(op._inputs[i]) for i in numbers)
        return shared, tuple(sorted((name, repr(value)) for name, value in op.attrs.items() if name[0] != "_"))

    return key


def _same_number(tensor: Tensor) -> Any:
    """A key for a hyperparameter. Separate reads of one variable are equal, and so are casts of one number and constants of one value."""
    op = tensor.op
    if op.type == "ReadVariableOp":
        return op._inputs[0], frozenset(op._control_inputs)
    if op.type == "Cast":
        return _same_number(op._inputs[0]), op.attrs["DstT"], frozenset(op._control_inputs)
    value = constant_value(tensor)
    return tensor if value is None else (tensor.dtype, value.tobytes())
