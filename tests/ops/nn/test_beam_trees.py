"""Samples of GatherTree, which follows the beams of a search back."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, samples


def followed(ids, parents, lengths, end):
    """The same, one beam after another."""
    found = np.full_like(ids, end)
    steps, batch, width = ids.shape
    for row in range(batch):
        for beam in range(width):
            at = beam
            for time in reversed(range(min(steps, lengths[row]))):
                found[time, row, beam], at = ids[time, row, at], parents[time, row, at]
            ends = np.flatnonzero(found[:, row, beam] == end)
            if ends.size:
                found[ends[0] :, row, beam] = end
    return found


_DRAWN = np.random.RandomState(0)
IDS = _DRAWN.randint(0, 6, (5, 3, 4)).astype(np.int32)
PARENTS = _DRAWN.randint(0, 4, (5, 3, 4)).astype(np.int32)
LENGTHS = np.array([5, 3, 7], np.int32)
SAMPLES = [
    Sample("GatherTree", [IDS, PARENTS, LENGTHS, np.int32(0)], reference=followed),
    Sample("GatherTree", [IDS, PARENTS, np.zeros(3, np.int32), np.int32(2)], reference=followed),
    Sample("GatherTree", [IDS, PARENTS + 4, LENGTHS, np.int32(0)], raises=(InvalidArgumentError, "Saw invalid parent id")),
    Sample("GatherTree", [IDS, PARENTS[:4], LENGTHS, np.int32(0)], raises=(InvalidArgumentError, "5.*4|must match")),
]  # fmt: skip


@samples(SAMPLES)
def test_beam_trees(sample: Sample) -> None:
    """Value, static shape, eager mode and GraphDef of each sample."""
    check_sample(sample)
