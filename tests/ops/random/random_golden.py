"""Golden numbers and the parameters they were drawn with; see tests/golden/random/make_random.py."""

import json
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).parent.parent.parent / "golden" / "random"
ARRAYS = np.load(FOLDER / "random.npz")
DIGESTS = json.loads((FOLDER / "digests.json").read_text())
SEED_TABLE = json.loads((FOLDER / "seeds.json").read_text())

SEED, SEED2 = 12345, 6789
STATELESS_SEEDS = [[0, 0], [1, 2], [-5, 2**40 + 3], [123456789012, -77]]
ALPHA = [0.3, 1.0, 0.99, 2.5, 40.0]
RATE = [0.3, 1.0, 0.0, 9.99, 10.0, 40.0, 1000.0]
COUNTS = [5, 100, 1000, 20, 30, 0, 7, 40, 1e6]
PROBS = [0.3, 0.5, 0.01, 0.9, 0.5, 0.5, 1.0, 0.2, 0.3]
BOUNDED = [
    [0, 1, -1, 1],
    [0, 1, -np.inf, 1],
    [1, 2, 3, 9],
    [0, 1, 4, np.inf],
    [0, 1, -np.inf, -4],
    [0, 1, 2, 2.1],
    [5, 3, -2, 6],
    [0, 1, 0.5, 3],
    [0, 1, -1, 3],
    [0, 1, -9, -3],
]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def torch_dtype(name: str) -> torch.dtype:
    return getattr(torch, name)


def assert_same_bits(ours: torch.Tensor | np.ndarray, key: str) -> None:
    """Equal shape, type and every bit (bfloat16 is stored as uint16)."""
    expected = ARRAYS[key]
    if isinstance(ours, torch.Tensor):
        ours = ours.view(torch.uint16).numpy() if ours.dtype == torch.bfloat16 else ours.numpy()
    assert ours.dtype == expected.dtype and ours.shape == expected.shape, key
    assert ours.tobytes() == expected.tobytes(), key
