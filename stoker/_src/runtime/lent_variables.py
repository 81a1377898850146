"""Variables of a GPU that are on the host for a while, because the host runs the steps that use them.

A small step runs faster on the host than on a GPU (plan/gpu/on_host.py), but its variables live on the device. Moving them for every run costs
more than such a step, so they stay on the host until something wants them on the device: any run that is not one of the host's gives all of them
back first, in one transfer. The device's memory of a variable is kept meanwhile, since recorded steps know its address.
"""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import forking
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.together import Together


class _Loan:
    """One variable: what it has on the device while it is on the host, and the reverse."""

    __slots__ = ("block", "device", "host_block", "host_value", "is_lent", "is_written", "state", "value")

    def __init__(self, state: VariableState) -> None:
        self.state = state
        self.value: Any = None
        self.block: Any = None
        self.device: torch.device | None = None
        self.host_value: Any = None
        self.host_block: Any = None
        self.is_lent = self.is_written = False


class LentVariables:
    """The variables that are on the host. Belongs to the lock on variables, whose holder calls `lend` and `give_back`."""

    def __init__(self) -> None:
        self.are_there = False  # whether any variable is lent
        self.returns = 0  # how often variables were given back
        # Seconds that runs on copies of variables have spent to take them from the device (plan/gpu/on_host.py).
        self.waited = 0.0
        self.together = Together()  # whether the host runs all steps that may borrow variables
        self._loans: dict[int, _Loan] = {}
        self._transfers = Transfers()
        self._guard = forking.lock()  # of runs that only read, which share the lock on variables
        self._unchanged_at = -1  # the count of runs that wrote, up to which the host's copies are those of the device

    def lend(self, states: list[tuple[VariableState, bool]], gpu: torch.device, writes: int) -> None:
        """Moves variables to the host, if they are on `gpu`, for a run that writes to those that are marked.

        `writes` is how many runs have written, this one included.
        """
        is_current = writes == self._unchanged_at + 1
        fetched = []
        for state, is_written in states:
            loan = self._loans.get(id(state))
            if loan is None:
                loan = self._loans[id(state)] = _Loan(state)
            if not loan.is_lent:
                if not _is_on(gpu, state):
                    continue
                if state.value is not None and not (is_current and loan.value is state.value):
                    fetched.append(loan)
                loan.value, loan.block, loan.device = state.value, state.block, state.device
                loan.is_lent, loan.is_written = True, False
            loan.is_written |= is_written
        if fetched:
            values = [loan.value for loan in fetched]
            for loan, found in zip(fetched, self._transfers.of(values, gpu).to_host(values)):
                if _are_alike(loan.host_value, found):
                    loan.host_value.copy_(found)
                else:
                    loan.host_value, loan.host_block = found.clone(), None
        for state, _ in states:
            loan = self._loans[id(state)]
            if loan.is_lent and state.home is None:
                has_value = loan.value is not None
                state.value, state.block = (loan.host_value, loan.host_block) if has_value else (None, None)
                state.device, state.home = None, gpu
                self.are_there = True

    def give_back(self, *, writes: int | None) -> None:
        """Moves all variables to the device. `writes` is how many runs have written; None if the caller is going to write, too."""
        with self._guard:
            if not self.are_there:
                return
            changed: dict[torch.device, list[_Loan]] = {}
            lent = [loan for loan in self._loans.values() if loan.is_lent]
            for loan in lent:
                loan.host_value, loan.host_block = loan.state.value, loan.state.block
                if loan.is_written and _are_alike(loan.value, loan.host_value):
                    changed.setdefault(loan.state.home, []).append(loan)
                elif loan.is_written:
                    loan.value = None if loan.host_value is None else loan.host_value.to(loan.state.home)
                    loan.block = None
            for gpu, loans in changed.items():
                values = [loan.value for loan in loans]
                self._transfers.of(values, gpu).to_device(values, [loan.host_value for loan in loans])
            # Another run that reads may look at a variable at any time, so its value on the device must be right by then.
            for loan in lent:
                state = loan.state
                state.value, state.block, state.device, state.home = loan.value, loan.block, loan.device, None
                loan.is_lent = False
            self._unchanged_at = -1 if writes is None else writes
            self.are_there = False
            self.returns += 1


def _is_on(gpu: torch.device, state: VariableState) -> bool:
    value = state.value
    if value is None:
        return state.device == gpu
    return isinstance(value, torch.Tensor) and value.device == gpu


def _are_alike(value: Any, other: Any) -> bool:
    return value is not None and other is not None and value.shape == other.shape and value.dtype == other.dtype


_ALIGNMENT = 256  # bytes


class Packing:
    """Tensors of given shapes and dtypes one after the other in memory."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self._kinds = [(each.dtype, each.shape, each.nbytes) for each in tensors]
        self._starts = [0]
        for _, _, size in self._kinds:
            self._starts.append(self._starts[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
        self.nbytes = self._starts[-1]

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        return [
            flat[start : start + size].view(dtype).view(shape)
            for start, (dtype, shape, size) in zip(self._starts, self._kinds)
        ]


class Transfers:
    """The transfers of groups of tensors that move again and again."""

    def __init__(self) -> None:
        self._known: dict[Any, _Transfer] = {}

    def of(self, values: list[torch.Tensor], gpu: torch.device) -> _Transfer:
        key = (gpu, *[(value.shape, value.dtype) for value in values])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _Transfer(values, gpu)
        return found


class _Transfer:
    """Moves tensors of the same shapes again and again between the host and the device, all of them at once."""

    def __init__(self, values: list[torch.Tensor], gpu: torch.device) -> None:
        packing, is_gpu = Packing(values), gpu.type == "cuda"
        self._host = torch.empty(packing.nbytes, dtype=torch.uint8, pin_memory=is_gpu)
        self._device = torch.empty(packing.nbytes, dtype=torch.uint8, device=gpu)
        self._on_host, self._on_device = packing.views(self._host), packing.views(self._device)
        self._event = torch.cuda.Event() if is_gpu else None  # after which the host may use its memory

    def to_host(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the values in memory of the host, which the next transfer uses again."""
        torch._foreach_copy_(self._on_device, values)  # pyright: ignore[reportPrivateImportUsage]
        self._host.copy_(self._device, non_blocking=True)
        self._mark()
        self._wait()
        return self._on_host

    def to_device(self, values: list[torch.Tensor], ours: list[torch.Tensor]) -> None:
        """Writes `ours` to `values` on the device, without waiting for it."""
        self._wait()
        torch._foreach_copy_(self._on_host, ours)  # pyright: ignore[reportPrivateImportUsage]
        self._device.copy_(self._host, non_blocking=True)
        torch._foreach_copy_(values, self._on_device)  # pyright: ignore[reportPrivateImportUsage]
        self._mark()

    def _mark(self) -> None:
        if self._event is not None:
            self._event.record()

    def _wait(self) -> None:
        if self._event is not None:
            self._event.synchronize()
