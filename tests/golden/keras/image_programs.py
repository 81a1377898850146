"""Programs with tf.keras.preprocessing.image. `python image_programs.py` records image_results.json: with TensorFlow 2 and tf_keras, because these
need PIL and SciPy beside it."""

import os
import tempfile

import numpy as np
from programs import IMAGES, as_lines, failure, plain

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def images_as_arrays(tf, folder):
    image = tf.keras.preprocessing.image
    picture = np.random.RandomState(1).randint(0, 255, (6, 5, 3)).astype("f")
    path = os.path.join(folder, "a.png")
    image.save_img(path, picture, scale=False)
    loaded = image.load_img(path)
    shapes = [
        image.img_to_array(image.load_img(path, color_mode=mode, target_size=size)).shape
        for mode, size in (("rgb", None), ("grayscale", None), ("rgba", (3, 4)), ("rgb", (8, 2)))
    ]
    errors = [
        failure(image.load_img, path, color_mode="other"),
        failure(image.load_img, path, target_size=(2, 2), interpolation="other"),
        failure(image.array_to_img, np.zeros((2, 2))),
        failure(image.array_to_img, np.zeros((2, 2, 2))),
        failure(image.img_to_array, np.zeros((2, 2, 2, 2))),
    ]
    scaled = image.img_to_array(image.array_to_img(picture - 20.0))
    first = image.img_to_array(loaded, data_format="channels_first")
    return image.img_to_array(loaded), loaded.size, shapes, scaled, first, errors


@program
def transformed_images(tf, folder):
    image = tf.keras.preprocessing.image
    found = []
    pictures = (IMAGES[:3] * 255).astype("f")
    for options in (
        {"rotation_range": 30},
        {"width_shift_range": 0.2, "height_shift_range": 2, "fill_mode": "constant", "cval": 7.0},
        {"shear_range": 20.0, "fill_mode": "reflect"},
        {"zoom_range": 0.3},
        {"zoom_range": (0.5, 0.8), "horizontal_flip": True, "vertical_flip": True},
        {"channel_shift_range": 30.0, "rescale": 1 / 255.0},
        {"brightness_range": (0.5, 1.5)},
        {"samplewise_center": True, "samplewise_std_normalization": True},
    ):
        made = image.ImageDataGenerator(**options)
        found.append(next(made.flow(pictures, batch_size=2, seed=3)))
    fit = image.ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True)
    fit.fit(pictures)
    found.append(next(fit.flow(pictures, shuffle=False)))
    made = image.ImageDataGenerator(rotation_range=10, validation_split=0.5)
    flow = made.flow(pictures, np.array([0, 0, 0]), batch_size=2, seed=1, subset="training")
    batches = [next(flow)[1] for _ in range(2)]
    drawn = made.get_random_transform((8, 8, 3), seed=5)
    errors = [
        failure(image.ImageDataGenerator, zoom_range=(1, 2, 3)),
        failure(image.ImageDataGenerator, data_format="other"),
        failure(image.ImageDataGenerator, validation_split=2.0),
        failure(made.flow, pictures, np.zeros(2)),
        failure(made.flow, pictures[0]),
        failure(made.flow, pictures, subset="other"),
    ]
    return found, batches, [float(drawn[key] or 0) for key in sorted(drawn)], len(flow), errors


@program
def images_in_folders(tf, folder):
    image = tf.keras.preprocessing.image
    for number, name in enumerate(("b", "a", "c")):
        os.makedirs(os.path.join(folder, name))
        for i in range(3):
            image.save_img(os.path.join(folder, name, "%d.png" % i), IMAGES[3 * number + i] * 255, scale=False)
    made = image.ImageDataGenerator(rescale=1 / 255.0, validation_split=0.4)
    flow = made.flow_from_directory(folder, target_size=(4, 4), batch_size=4, seed=2)
    x, y = next(flow)
    binary = made.flow_from_directory(folder, (8, 8), "grayscale", ["a", "c"], "binary", shuffle=False)
    part = made.flow_from_directory(folder, (8, 8), class_mode="sparse", shuffle=False, subset="validation")
    errors = [failure(made.flow_from_directory, folder, class_mode="other")]
    return (
        flow.class_indices,
        flow.samples,
        list(flow.classes),
        sorted(flow.filenames),
        (x, y),
        next(binary),
        part.filenames,
        next(part)[1],
        len(flow),
        errors,
    )


@program
def training_from_a_generator(tf, folder):
    keras = tf.keras
    made = keras.preprocessing.image.ImageDataGenerator(samplewise_center=True)
    flow = made.flow(IMAGES, np.arange(24) % 2, batch_size=8, shuffle=False)
    model = keras.Sequential([keras.layers.Flatten(input_shape=(8, 8, 3)), keras.layers.Dense(1, activation="sigmoid")])
    model.set_weights([np.full(each.shape, 0.01, "f") for each in model.get_weights()])
    model.compile("sgd", "binary_crossentropy")
    history = model.fit_generator(flow, epochs=2, verbose=0, shuffle=False, steps_per_epoch=3).history
    return history, model.predict_generator(flow, steps=2).shape, model.evaluate_generator(flow, steps=3)


if __name__ == "__main__":
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow.compat.v1 as tensorflow

    made = {}
    for name, run in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as temporary:
            made[name] = plain(run(tensorflow, temporary))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "image_results.json")
    with open(path, "w") as file:
        file.write(as_lines(made))
