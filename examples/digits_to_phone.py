"""From records to a model for a phone: TFRecords, tf.data, a convolutional network, checkpoints, TensorBoard, TFLite.

python -m stoker run examples/digits_to_phone.py [--steps 400] [--directory digits]
tensorboard --logdir digits/training
"""

import argparse
import os

import numpy as np
import tensorflow as tf

SIZE, CLASSES = 16, 7
# The segments of a seven-segment display that each digit lights: top, left and right of the upper half, middle, lower half, bottom.
SEGMENTS = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111"]
STROKES = [(2, 3, 2, 12), (2, 3, 8, 3), (2, 12, 8, 12), (8, 3, 8, 12), (8, 3, 14, 3), (8, 12, 14, 12), (14, 3, 14, 12)]


def draw(digit, rng):
    """A noisy picture of a digit, shifted by up to a pixel."""
    image = rng.rand(SIZE, SIZE) * 0.8
    row, column = rng.randint(-1, 2, 2)
    for lit, (top, left, bottom, right) in zip(SEGMENTS[digit], STROKES):
        if lit == "1":
            image[top + row : bottom + row + 1, left + column : right + column + 1] += 0.4
    return (255 * np.clip(image, 0, 1)).astype(np.uint8)


def write_records(path, count, seed):
    """Writes `count` pictures as PNGs in Examples."""
    rng = np.random.RandomState(seed)
    image = tf.placeholder(tf.uint8, [SIZE, SIZE, 1])
    encoded = tf.image.encode_png(image)
    with tf.Session() as session, tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(count):
            label = rng.randint(CLASSES)
            png = session.run(encoded, {image: draw(label, rng)[..., None]})
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[png])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def read(record):
    parsed = tf.parse_single_example(
        record, {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
    )
    image = tf.reshape(tf.image.decode_png(parsed["image"], channels=1), [SIZE, SIZE, 1])
    return tf.cast(image, tf.float32) / 255.0, parsed["label"]


def network(images, training):
    """Logits of two convolutions and a dense layer. `training` chooses the statistics of batch normalization, and dropout."""
    with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
        net = images
        for filters in (8, 16):
            net = tf.layers.conv2d(net, filters, 3, padding="same", use_bias=False, name="conv%d" % filters)
            net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, name="norm%d" % filters))
            net = tf.layers.max_pooling2d(net, 2, 2)
        net = tf.layers.dropout(tf.layers.flatten(net), 0.3, training=training)
        return tf.layers.dense(net, CLASSES, name="logits")


def train(records, directory, steps):
    """Trains with checkpoints and summaries; a run that was interrupted goes on from its last checkpoint."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        dataset = tf.data.TFRecordDataset(records).map(read).shuffle(1000, seed=2).repeat().batch(32).prefetch(1)
        images, labels = tf.data.make_one_shot_iterator(dataset).get_next()
        logits = network(images, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        right = tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32)
        tf.summary.scalar("loss", loss)
        tf.summary.scalar("accuracy", tf.reduce_mean(right))
        tf.summary.image("digits", images, max_outputs=3)
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            update = tf.train.AdamOptimizer(2e-3).minimize(loss, global_step=step)
        hooks = [tf.train.StopAtStepHook(last_step=steps)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=directory, hooks=hooks, save_checkpoint_steps=100, save_summaries_steps=20
        ) as session:
            while not session.should_stop():
                session.run(update)


def convert(directory):
    """A TFLite model of the last checkpoint, with arithmetic in 8 bits."""
    rng = np.random.RandomState(3)
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.placeholder(tf.float32, [None, SIZE, SIZE, 1], name="images")
        probabilities = tf.nn.softmax(network(images, training=False))
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(directory))
        converter = tf.lite.TFLiteConverter.from_session(session, [images], [probabilities])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [draw(i % CLASSES, rng)[None, :, :, None].astype(np.float32) / 255] for i in range(100)
        )
        return converter.convert()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--directory", default="digits")
    args = parser.parse_args()
    training = os.path.join(args.directory, "training")
    records = os.path.join(args.directory, "digits.tfrecord")
    tf.gfile.MakeDirs(training)
    if not tf.gfile.Exists(records):
        write_records(records, 3000, seed=0)
    train(records, training, args.steps)

    model = convert(training)
    path = os.path.join(args.directory, "digits.tflite")
    with open(path, "wb") as file:
        file.write(model)
    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    given, found = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    rng = np.random.RandomState(4)
    labels = rng.randint(0, CLASSES, 500)
    right = 0
    for label in labels:
        interpreter.set_tensor(given, draw(label, rng)[None, :, :, None].astype(np.float32) / 255)
        interpreter.invoke()
        right += int(interpreter.get_tensor(found).argmax() == label)
    print("%s: %d bytes, accuracy %.3f on %d new pictures" % (path, len(model), right / len(labels), len(labels)))


if __name__ == "__main__":
    main()
