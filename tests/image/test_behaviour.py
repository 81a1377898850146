"""tf.image in programs: unknown shapes, gradients, names of nodes, both generations, graphs that travel."""

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1

R = np.random.RandomState(0)
ONE, BATCH = R.rand(5, 7, 3).astype(np.float32), R.rand(2, 6, 4, 3).astype(np.float32)

CALLS = {
    "flip": lambda x: tf.image.flip_left_right(x),
    "flip_up_down": lambda x: tf.image.flip_up_down(x),
    "rot90": lambda x: tf.image.rot90(x, 1),
    "rot90 by a tensor": lambda x: tf.image.rot90(x, tf1.placeholder_with_default(3, [])),
    "transpose": lambda x: tf.image.transpose(x),
    "crop": lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 2, 2),
    "pad": lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 9, 9),
    "crop or pad": lambda x: tf.image.resize_with_crop_or_pad(x, 4, 9),
    "resize with pad": lambda x: tf.image.resize_with_pad(x, 4, 9),
    "central_crop": lambda x: tf.image.central_crop(x, 0.5),
    "resize": lambda x: tf.image.resize(x, [4, 4]),
    "resize, fitted": lambda x: tf.image.resize(x, [4, 4], preserve_aspect_ratio=True),
    "resize by a tensor": lambda x: tf.image.resize(x, tf1.placeholder_with_default([4, 4], [2]), method="lanczos3"),
    "resize_images": lambda x: tf1.image.resize_images(x, [4, 4]),
    "standardization": lambda x: tf.image.per_image_standardization(x),
    "gray": lambda x: tf.image.rgb_to_grayscale(x),
    "hue": lambda x: tf.image.adjust_hue(x, 0.2),
    "variation": lambda x: tf.image.total_variation(x),
    "psnr": lambda x: tf.image.psnr(x, x * 0.9, 1.0),
    "ssim": lambda x: tf.image.ssim(x, x * 0.9, 1.0, filter_size=3),
    "ssim_multiscale": lambda x: tf.image.ssim_multiscale(x, x * 0.9, 1.0, power_factors=(0.5, 0.5), filter_size=2),
    "random crop": lambda x: tf.image.stateless_random_crop(x, tf1.shape(x) - 1, (1, 2)),
}


@pytest.mark.parametrize("value", [ONE, BATCH], ids=["one", "batch"])
@pytest.mark.parametrize("name", CALLS)
def test_sizes_may_be_unknown(name, value):
    """With unknown sizes the values are the same, and static shapes fit the real ones."""
    results = []
    for shape in (value.shape, [None] * value.ndim):
        with tf1.Graph().as_default(), tf1.Session() as session:
            image = tf1.placeholder(tf.float32, shape)
            tensor = CALLS[name](image)
            results.append(session.run(tensor, {image: value}))
            assert tensor.shape.is_compatible_with(results[-1].shape)
    np.testing.assert_allclose(results[0], results[1], atol=1e-6)


@pytest.mark.parametrize("name", ["flip", "flip_up_down", "rot90", "transpose"])
@pytest.mark.parametrize("value", [ONE, BATCH], ids=["one", "batch"])
def test_the_rank_may_be_unknown(name, value):
    """Whether it is an image or a batch is seen when the graph runs."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        image = tf1.placeholder(tf.float32)
        found = session.run(CALLS[name](image), {image: value})
        np.testing.assert_array_equal(found, session.run(CALLS[name](tf1.constant(value))))


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "lanczos3", "gaussian"])
@pytest.mark.parametrize("size", [(3, 2), (9, 11)])
def test_the_gradient_of_resizing_is_its_transpose(method, size):
    """Resizing is linear: the gradient towards each pixel is the sum of what that pixel alone becomes, weighted."""
    shape = (1, 5, 4, 1)
    weights = R.rand(1, *size, 1).astype(np.float32)
    with tf1.Graph().as_default(), tf1.Session() as session:
        image = tf1.placeholder(tf.float32, shape)
        resized = tf.image.resize(image, size, method=method)
        gradient = session.run(tf1.gradients(tf1.reduce_sum(resized * weights), image)[0], {image: np.zeros(shape)})
        pixels = tf1.placeholder(tf.float32, (20, 5, 4, 1))
        alone = session.run(
            tf1.reduce_sum(tf.image.resize(pixels, size, method=method) * weights, [1, 2, 3]),
            {pixels: np.eye(20).reshape(20, 5, 4, 1)},
        )
    np.testing.assert_allclose(gradient.ravel(), alone, atol=1e-5)


def test_crop_and_resize_teaches_boxes():
    """The gradient towards a box is the slope of the sum of its crop, and towards the image a weight for each pixel used."""
    image = np.add.outer(np.arange(6) ** 2, np.arange(7)).astype(np.float32)[None, :, :, None]
    box = np.array([[0.23, 0.35, 0.77, 0.69]], np.float32)
    with tf1.Graph().as_default(), tf1.Session() as session:
        images, boxes = tf1.placeholder(tf.float32, image.shape), tf1.placeholder(tf.float32, box.shape)
        total = tf1.reduce_sum(tf.image.crop_and_resize(images, boxes, [0], (4, 4)))
        to_image, to_boxes = session.run(tf1.gradients(total, [images, boxes]), {images: image, boxes: box})
        assert np.isclose(to_image.sum(), 16, atol=1e-4)
        for corner in range(4):
            step = np.zeros_like(box)
            step[0, corner] = 1e-3
            sums = [session.run(total, {images: image, boxes: box + sign * step}) for sign in (1, -1)]
            np.testing.assert_allclose(to_boxes[0, corner], (sums[0] - sums[1]) / 2e-3, rtol=2e-2)


def test_integer_images_have_no_gradient():
    """Resizing bytes gives floats that depend on nothing that can be trained."""
    with tf1.Graph().as_default():
        image = tf1.placeholder(tf.uint8, [1, 4, 4, 3])
        assert tf1.gradients(tf.image.resize(image, (2, 2)), image) == [None]


def test_resize_images_leaves_what_has_the_size():
    """In 1.x an image of the size asked for is returned as it is, dtype and all; in 2.x it becomes float32."""
    with tf1.Graph().as_default():
        image = tf1.placeholder(tf.uint8, [4, 5, 3])
        assert tf1.image.resize_images(image, [4, 5]).dtype == tf.uint8
        assert tf.image.resize(image, [4, 5]).dtype == tf.float32
        assert tf.image.resize(image, [4, 5], method="nearest").dtype == tf.uint8


def test_static_sizes_of_results():
    """What is known of the input and of the arguments is known of the result."""
    with tf1.Graph().as_default():
        one, many = tf1.placeholder(tf.float32, [None, None, 3]), tf1.placeholder(tf.float32, [8, None, None, 3])
        assert tf.image.resize(one, [4, 5]).shape.as_list() == [4, 5, 3]
        assert tf.image.resize(many, [4, 5], method="lanczos5").shape.as_list() == [8, 4, 5, 3]
        assert tf.image.resize_with_crop_or_pad(one, 4, 5).shape.as_list() == [4, 5, 3]
        assert tf.image.resize_with_pad(many, 4, 5).shape.as_list() == [8, 4, 5, 3]
        assert tf.image.crop_to_bounding_box(many, 1, 1, 2, 3).shape.as_list() == [8, 2, 3, 3]
        assert tf.image.flip_left_right(many).shape.as_list() == [8, None, None, 3]
        assert tf.image.random_flip_up_down(many).shape.as_list() == [8, None, None, 3]
        assert tf.image.rgb_to_grayscale(many).shape.as_list() == [8, None, None, 1]
        assert tf.image.grayscale_to_rgb(many[..., :1]).shape.as_list() == [8, None, None, 3]
        fixed = tf1.placeholder(tf.float32, [8, 4, 6, 3])
        assert tf.image.rot90(fixed).shape.as_list() == [8, 6, 4, 3]
        assert tf.image.rot90(fixed, 2).shape.as_list() == [8, 4, 6, 3]
        assert tf.image.central_crop(fixed, 0.5).shape.as_list() == [8, 2, 4, 3]
        assert tf.image.sobel_edges(fixed).shape.as_list() == [8, 4, 6, 3, 2]
        boxes, scores = tf1.placeholder(tf.float32, [9, 4]), tf1.placeholder(tf.float32, [9])
        indices, valid = tf.image.non_max_suppression_padded(boxes, scores, 5, pad_to_max_output_size=True)
        assert (indices.shape.as_list(), valid.shape.as_list()) == ([5], [])


NODES = {
    "resize_images": (lambda x: tf1.image.resize_images(x, [3, 4]), {"resize/size": "Const", "resize/ResizeBilinear": "ResizeBilinear"}),
    "resize": (lambda x: tf.image.resize(x, [3, 4], antialias=True), {"resize/ScaleAndTranslate": "ScaleAndTranslate"}),
    "flip": (lambda x: tf.image.flip_left_right(x), {"flip_left_right/control_dependency": "Identity", "flip_left_right/ReverseV2": "ReverseV2"}),
    "crop": (lambda x: tf.image.crop_to_bounding_box(x, 0, 0, 2, 2), {"crop_to_bounding_box/Slice": "Slice"}),
    "pad": (lambda x: tf.image.pad_to_bounding_box(x, 0, 0, 9, 9), {"pad_to_bounding_box/Pad": "Pad"}),
    "standardization": (lambda x: tf.image.per_image_standardization(x), {"per_image_standardization": "RealDiv", "per_image_standardization/Rsqrt": "Rsqrt"}),
    "brightness": (lambda x: tf.image.random_brightness(x, 0.1), {"random_uniform/RandomUniform": "RandomUniform", "adjust_brightness": "AddV2", "adjust_brightness/Identity": "Identity"}),
    "contrast": (lambda x: tf.image.adjust_contrast(x, 0.1), {"adjust_contrast": "AdjustContrastv2"}),
    "hue": (lambda x: tf.image.adjust_hue(x, 0.1), {"adjust_hue/AdjustHue": "AdjustHue", "adjust_hue/Identity": "Identity"}),
    "saturation": (lambda x: tf.image.adjust_saturation(x, 0.1), {"adjust_saturation/AdjustSaturation": "AdjustSaturation"}),
    "gamma": (lambda x: tf.image.adjust_gamma(x, 0.5), {"adjust_gamma/pow": "Pow", "adjust_gamma/mul": "Mul"}),
    "gray": (lambda x: tf.image.rgb_to_grayscale(x), {"rgb_to_grayscale/Tensordot/MatMul": "MatMul", "rgb_to_grayscale": "Identity"}),
    "convert": (lambda x: tf.image.convert_image_dtype(x, tf.uint8, saturate=True), {"convert_image/Mul": "Mul", "convert_image/clamp": "ClipByValue", "convert_image": "Cast"}),
    "psnr": (lambda x: tf.image.psnr(x, x, 1.0), {"PSNR/SquaredDifference": "SquaredDifference", "PSNR/psnr": "Sub"}),
    "ssim": (lambda x: tf.image.ssim(x, x, 1.0, filter_size=2), {"SSIM/Softmax": "Softmax", "SSIM/depthwise": "DepthwiseConv2dNative"}),
    "suppression": (lambda x: tf.image.non_max_suppression(x[0, :, :, 0], x[0, :, 0, 0], 2), {"non_max_suppression/NonMaxSuppressionV3": "NonMaxSuppressionV3"}),
    "crop_and_resize": (lambda x: tf.image.crop_and_resize(x, x[0, :, :, 0], [0] * 5, [2, 2]), {"CropAndResize": "CropAndResize"}),
    "window": (lambda x: tf.image.sample_distorted_bounding_box([5, 4, 3], x[:1, :, :, 0]), {"sample_distorted_bounding_box/SampleDistortedBoundingBoxV2": "SampleDistortedBoundingBoxV2"}),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_names_of_nodes(name):
    """Nodes have TensorFlow's ops and names."""
    call, wanted = NODES[name]
    with tf1.Graph().as_default() as graph:
        call(tf1.placeholder(tf.float32, [2, 5, 4, 3], name="x"))
        found = {node.name: node.op for node in graph.as_graph_def().node}
    assert {node: found.get(node) for node in wanted} == wanted


def test_names_in_both_generations():
    """`tf.image` has the 2.x forms, `tf.compat.v1.image` the 1.x forms."""
    assert tf.image.ResizeMethod.BILINEAR == "bilinear"
    assert tf1.image.ResizeMethod.BILINEAR == 0
    assert not hasattr(tf.image, "resize_images") and not hasattr(tf1.image, "stateless_random_crop")
    assert tf1.image.transpose_image is tf.image.transpose
    assert tf1.image.resize_image_with_crop_or_pad is tf.image.resize_with_crop_or_pad


def test_a_pipeline_of_distortions_repeats_with_its_seed():
    """The same seeds give the same pictures in another session; another graph seed gives others."""

    def run(seed):
        with tf1.Graph().as_default(), tf1.Session() as session:
            tf1.set_random_seed(seed)
            image = tf.image.random_crop(tf1.constant(ONE), [4, 5, 3])
            image = tf.image.random_flip_left_right(image)
            image = tf.image.random_brightness(image, 0.3)
            image = tf.image.random_contrast(image, 0.5, 1.5)
            image = tf.image.random_hue(tf.image.random_saturation(image, 0.5, 1.5), 0.2)
            return [session.run(image) for _ in range(3)]

    first, again, other = run(7), run(7), run(8)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other) and not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("noise", ["uniform", "gaussian", "zero"])
def test_noise_around_a_glimpse(eager, noise):
    """Outside of the image there is noise of the image's range, or nothing."""
    image = 1 + R.rand(1, 4, 4, 2).astype(np.float32)
    glimpse = tf.image.extract_glimpse(image, (30, 30), [[0.0, 0.0]], noise=noise).numpy()
    np.testing.assert_array_equal(glimpse[:, 13:17, 13:17], image)
    outside = np.concatenate([glimpse[:, :13].ravel(), glimpse[:, 17:].ravel()])
    if noise == "zero":
        assert not outside.any()
    else:
        assert outside.min() >= image.min() and outside.max() <= image.max() and outside.std() > 0.1


def test_layouts_other_than_contiguous(eager):
    """Images that are views of others, transposed or cut, are resized alike."""
    image = R.rand(2, 8, 9, 3).astype(np.float32)
    whole = tf.constant(image)
    for method in ("bilinear", "bicubic", "area", "nearest"):
        turned = tf.image.resize(tf.transpose(whole, [0, 2, 1, 3]), (4, 5), method=method)
        expected = tf.image.resize(image.transpose(0, 2, 1, 3).copy(), (4, 5), method=method)
        np.testing.assert_array_equal(turned.numpy(), expected.numpy())


def test_python_and_c_agree(eager, monkeypatch):
    """Without the native extension torch gives the same pictures: resizing to the bit, colours to rounding."""
    from stoker._src.ops.image import colour, resampling

    image = R.rand(2, 13, 17, 3).astype(np.float32)
    pictures = [
        image,
        (image * 255).astype(np.uint8),
        R.rand(1, 5, 6, 1).astype(np.float32),
        R.rand(1, 5, 6, 5).astype(np.float32),
    ]
    methods = ["bilinear", "bicubic", "area", "lanczos3", "mitchellcubic"]

    def resized():
        return [
            tf.image.resize(x, size, m, antialias=True).numpy()
            for x in pictures
            for m in methods
            for size in ((7, 30), (20, 5))
        ] + [tf.image.resize(x, size, m).numpy() for x in pictures for m in methods for size in ((7, 30), (20, 5))]

    def coloured():
        return [tf.image.adjust_hue(image, 0.37).numpy(), tf.image.adjust_saturation(image, 1.3).numpy()]

    native = resized(), coloured()
    monkeypatch.setattr(resampling, "native", None)
    monkeypatch.setattr(colour, "native", None)
    for found, expected in zip(resized(), native[0]):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(coloured(), native[1]):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_padded_suppression_drops_boxes_at_the_threshold(eager):
    """A box that overlaps a better one by exactly the threshold is dropped, and a box without positive coordinates is padding."""
    boxes = tf.constant(
        [
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 0.0, 1.0, 0.5],
            [2.0, 2.0, 3.0, 3.0],
            [0.0, 0.0, 0.0, 0.0],
            [-2.0, -2.0, -1.0, -1.0],
        ]
    )
    scores = tf.constant([0.9, 0.8, -float("inf"), 0.7, 0.6])
    indices, count = tf.image.non_max_suppression_padded(boxes, scores, 4, 0.5, pad_to_max_output_size=True)
    assert (indices.numpy().tolist(), int(count)) == ([0, 2, 0, 0], 2)
    indices, _ = tf.image.non_max_suppression_padded(boxes, scores, 4, 0.0, 0.1)
    assert indices.numpy().tolist() == [0, 1]
    assert tf.image.non_max_suppression(boxes, scores, 2, 0.5).numpy().tolist() == [0, 1]


@pytest.mark.parametrize("name", ["rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb"])
def test_integers_have_no_luma(eager, name):
    """The matrices of YIQ and YUV have fractions, so integer images are refused."""
    with pytest.raises(TypeError, match="uint8"):
        getattr(tf.image, name)(tf.constant(np.ones((1, 1, 3), np.uint8)))


@pytest.mark.parametrize("name", ["adjust_hue", "adjust_saturation"])
def test_nan_stays_nan(eager, name):
    """A pixel with a NaN channel becomes NaN, and its neighbours do not change."""
    image = np.random.RandomState(1).rand(3, 5, 3).astype(np.float32)
    expected = getattr(tf.image, name)(image, 0.3).numpy()
    image[1, 2, 1] = expected[1, 2] = np.nan
    np.testing.assert_allclose(getattr(tf.image, name)(image, 0.3).numpy(), expected, rtol=1e-6)


def test_bfloat16_white_stays_white(eager):
    """1 in bfloat16 becomes the largest small integer, although 255.5 rounds to 256."""
    image = tf.cast(tf.constant([[[0.0, 0.5, 1.0]]]), tf.bfloat16)
    assert tf.image.convert_image_dtype(image, tf.uint8).numpy().tolist() == [[[0, 128, 255]]]
    assert tf.image.convert_image_dtype(image, tf.int16).numpy().tolist() == [[[0, 16384, 32767]]]
