"""The kernels of image ops on a GPU give what they give on the CPU."""

import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.graph.definition import find_definition

CENTRES = {"align_corners": False, "half_pixel_centers": True}
FILTER = {"kernel_type": "lanczos3", "antialias": True}
SIZE, SCALE, PLACE = [56, 56], [0.5, 0.4], [0.0, 0.0]
_random = torch.Generator().manual_seed(0)


def _pixels(*shape):
    return torch.rand(*shape, generator=_random)


IMAGES, SMALL, CROPS = _pixels(4, 60, 80, 3), _pixels(4, 56, 56, 3), _pixels(2, 20, 30, 3)
BOXES = torch.tensor([[0, 0, 1, 1], [0.1, 0.2, 0.8, 1.3]])
INDICES = torch.tensor([0, 1], dtype=torch.int32)
FACTOR = torch.tensor(0.3)
CASES = [
    ("ResizeNearestNeighbor", (IMAGES, SIZE), CENTRES),
    ("ResizeNearestNeighborGrad", (SMALL, [60, 80]), CENTRES),
    ("ResizeBilinear", (IMAGES, SIZE), CENTRES),
    ("ResizeBilinear", ((IMAGES * 255).to(torch.uint8), SIZE), CENTRES),
    ("ResizeBilinearGrad", (SMALL, IMAGES), CENTRES),
    ("ResizeBicubic", (IMAGES, SIZE), CENTRES),
    ("ResizeBicubicGrad", (SMALL, IMAGES), CENTRES),
    ("ResizeArea", (IMAGES, SIZE), {"align_corners": False}),
    ("ScaleAndTranslate", (IMAGES, SIZE, SCALE, PLACE), FILTER),
    ("ScaleAndTranslateGrad", (SMALL, IMAGES, SCALE, PLACE), FILTER),
    ("RGBToHSV", (IMAGES,), {}),
    ("HSVToRGB", (IMAGES,), {}),
    ("AdjustHue", (IMAGES, FACTOR), {}),
    ("AdjustSaturation", (IMAGES, FACTOR), {}),
    ("AdjustContrastv2", (IMAGES, FACTOR), {}),
    ("CropAndResize", (IMAGES, BOXES, INDICES, [20, 30]), {"method": "bilinear", "extrapolation_value": 0.0}),
    ("CropAndResizeGradImage", (CROPS, BOXES, INDICES, [4, 60, 80, 3]), {"T": tf.float32, "method": "bilinear"}),
    ("CropAndResizeGradBoxes", (CROPS, IMAGES, BOXES, INDICES), {}),
    ("NonMaxSuppressionV3", (BOXES, torch.tensor([0.3, 0.6]), 2, 0.5, 0.0), {}),
    ("DrawBoundingBoxes", (IMAGES, BOXES.repeat(4, 1, 1)), {}),
    (
        "ExtractGlimpseV2",
        (IMAGES, [9, 9], torch.zeros(4, 2)),
        {"centered": True, "normalized": True, "uniform_noise": False, "noise": "gaussian"},
    ),
]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("name, inputs, attrs", CASES, ids=[case[0] for case in CASES])
def test_on_a_gpu(name, inputs, attrs):
    """Tensors of the GPU are taken, and the result is the CPU's but for the order of sums."""
    definition = find_definition(name)
    assert definition is not None and definition.kernel_fn is not None
    expected = definition.kernel_fn(*inputs, **attrs)
    moved = [each.cuda() if isinstance(each, torch.Tensor) else each for each in inputs]
    found = definition.kernel_fn(*moved, **attrs)
    if found.dtype.is_floating_point:
        assert found.device.type == "cuda"
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-4)
