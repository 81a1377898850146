"""What is known of a model before its numbers become integers: ranges, formats, and what the caller asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker._src.lite.model import Quantization, Tensor
from stoker._src.lite.quantization.calibration import Ranges
from stoker._src.lite.quantization.schemes import CHANNELS, Scheme


class QuantizationError(ValueError):
    """A model that cannot be quantized as asked."""


@dataclass
class TrainedRange:
    """The range of a weight during training with fake quantization."""

    low: float
    high: float
    narrow: bool = False
    bits: int = 8


@dataclass
class Plan:
    """The known ranges and formats of a model before it is rewritten."""

    ranges: Ranges
    scheme: Scheme
    weight_ranges: dict[Tensor, TrainedRange] = field(default_factory=dict)
    grids: list[TrainedRange] = field(default_factory=list)
    """Ranges of weights that are already rounded. The values show which weights they belong to."""
    given: dict[Tensor, Quantization] = field(default_factory=dict)
    """Scales that are prescribed, such as those of inputs."""
    strict: bool = False
    """Whether an op that stays in floating point is an error."""
    trained: bool = False
    """Whether the ranges come from training and must not change."""
    one_scale: frozenset[str] = frozenset()
    """Products whose weights have a single scale, although the scheme has one for each channel."""
    floating: frozenset[str] = frozenset()
    """Ops without integer kernels in the oldest runtime."""

    def channels(self, code: str) -> int | None:
        """The dimension of a product's weights that has a scale for each slice, or None."""
        return CHANNELS.get(code) if self.scheme.per_channel and code not in self.one_scale else None
