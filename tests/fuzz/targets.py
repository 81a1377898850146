"""All fuzz targets. `scripts/fuzz.py` runs them; `test_targets.py` replays their seeds and the committed corpus."""

from tests.fuzz import (  # noqa: F401  (each registers its own)
    message_targets,
    picture_targets,
    record_targets,
    service_targets,
    text_targets,
)
from tests.fuzz.registry import MEMORY_BOUND, SEEDS, TARGETS, TIME_BOUND, small_limits

__all__ = ["MEMORY_BOUND", "SEEDS", "TARGETS", "TIME_BOUND", "small_limits"]
