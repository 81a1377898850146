"""Cases of the ops on colours: every branch of hue, grays, black, values outside of [0, 1], and gradients."""

import numpy as np

EDGES = np.array(
    [[.2, .5, .7], [.5, .5, .5], [.9, .1, .1], [.1, .9, .9], [0, 0, 0], [1, 1, 0], [.3, .7, .2], [.7, .3, .2], [.7, .2, .3], [.2, .7, .3], [.3, .2, .7],
     [1, 0, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [-.2, .5, 1.4], [.1, .1, .9], [.9, .9, .1], [.4, .2, .4]], "float32"
).reshape(1, 20, 1, 3)  # fmt: skip
RANDOM = np.random.RandomState(3).rand(2, 5, 7, 3).astype("float32")
INPUTS = {"edges": EDGES, "random": RANDOM, "pixel": RANDOM[:1, :1, :1], "empty": RANDOM[:0]}


def slope(tf, function, x, weights):
    with tf.GradientTape() as tape:
        x = tf.constant(x)
        tape.watch(x)
        y = function(x) * weights
    return tape.gradient(y, x)


def cases(case):
    for name, x in INPUTS.items():
        case(f"RGBToHSV {name}", lambda tf, x=x: tf.raw_ops.RGBToHSV(images=x))
        case(f"HSVToRGB {name}", lambda tf, x=x: tf.raw_ops.HSVToRGB(images=x))
        case(f"RGBToHSV-slope {name}", lambda tf, x=x: slope(tf, tf.image.rgb_to_hsv, x, np.float32([1, 2, 3])))
        for amount in (0.1, -0.4, 1.0, 0.5, -1.0, 0.0, 3.7):
            case(
                f"AdjustHue {name} {amount}",
                lambda tf, x=x, amount=amount: tf.raw_ops.AdjustHue(images=x, delta=amount),
            )
            case(
                f"AdjustSaturation {name} {amount}",
                lambda tf, x=x, amount=amount: tf.raw_ops.AdjustSaturation(images=x, scale=amount),
            )
            case(
                f"AdjustContrastv2 {name} {amount}",
                lambda tf, x=x, amount=amount: tf.raw_ops.AdjustContrastv2(images=x, contrast_factor=amount),
            )
        for dtype in ("float16", "float64"):
            case(
                f"RGBToHSV {name} {dtype}",
                lambda tf, x=x, dtype=dtype: tf.raw_ops.RGBToHSV(images=tf.constant(x.astype(dtype))),
            )
            case(
                f"HSVToRGB {name} {dtype}",
                lambda tf, x=x, dtype=dtype: tf.raw_ops.HSVToRGB(images=tf.constant(x.astype(dtype))),
            )
