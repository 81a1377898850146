"""Moving tensors of the host to a GPU, also while a step is recorded as a CUDA graph (runtime/plan/gpu/cuda_graphs.py)."""

from __future__ import annotations

import threading

import torch

# What a step that is recorded (cuda_graphs.py) reads from pinned memory at every replay. `kept` collects the copies of host tensors, or is None
# while nothing is recorded; `spare` holds copies of an earlier run of the same step, whose memory is used again. `generators` collects the
# states of the random ops whose numbers the device draws, by id.
recording = threading.local()


def moved_to(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Moves a tensor. A step that is recorded reads a copy of a host tensor at every replay."""
    kept = getattr(recording, "kept", None)
    if kept is None or tensor.is_cuda or device.type == "cpu":
        return tensor.to(device)
    # Pinned memory must not be allocated during a recording: torch would release it with the recording's own memory.
    spare = getattr(recording, "spare", None)
    found = spare.pop(0) if spare else None
    if found is not None and found.shape == tensor.shape and found.dtype == tensor.dtype:
        found.copy_(tensor)
    else:
        found = tensor.pin_memory()
    kept.append(found)
    return found.to(device, non_blocking=True)  # the device reads pinned memory without making the host wait
