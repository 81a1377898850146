"""Rows of CSV files: TextLineReader, decode_csv, batch, and the summaries that queues bring."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf


def write_files(folder):
    rng = np.random.RandomState(5)
    names = []
    for part in range(3):
        name = os.path.join(folder, "houses%d.csv" % part)
        with open(name, "w") as out:
            out.write("area,rooms,town,price\n")
            for i in range(7):
                area, rooms = rng.randint(40, 200), rng.randint(1, 7)
                town = ["Ulm", "Bonn", "Jena"][rng.randint(3)]
                price = 2.0 * area + 10.0 * rooms + {"Ulm": 0, "Bonn": 40, "Jena": -20}[town]
                out.write("%d,%s,%s,%.1f\n" % (area, "" if i == 3 else rooms, town, price))
        names.append(name)
    return names


folder = tempfile.mkdtemp()
write_files(folder)
filenames = tf.train.match_filenames_once(os.path.join(folder, "houses*.csv"))
filename_queue = tf.train.string_input_producer(filenames, num_epochs=4, shuffle=False)
reader = tf.TextLineReader(skip_header_lines=1)
key, line = reader.read(filename_queue)
area, rooms, town, price = tf.decode_csv(line, record_defaults=[[0.0], [3], [""], [0.0]])
features = tf.stack([area / 100.0, tf.cast(rooms, tf.float32)])
batch = tf.train.batch(
    {"features": features, "town": town, "price": price, "key": key},
    batch_size=10, capacity=100, allow_smaller_final_batch=True, name="houses",
)  # fmt: skip
towns = tf.cast(tf.equal(tf.expand_dims(batch["town"], 1), ["Ulm", "Bonn", "Jena"]), tf.float32)
inputs = tf.concat([batch["features"], towns], 1)
w = tf.get_variable("w", [5, 1], initializer=tf.zeros_initializer())
predicted = tf.squeeze(tf.matmul(inputs, w), 1)
loss = tf.losses.mean_squared_error(batch["price"] / 100.0, predicted)
train = tf.train.GradientDescentOptimizer(0.02).minimize(loss)
print("shapes: %s %s" % (batch["features"].get_shape(), batch["price"].get_shape()))
print("summaries: %s" % sorted(s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)))
print("queue runners: %s" % sorted(r.name for r in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)))

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    print("files: %s" % [os.path.basename(name.decode()) for name in sess.run(filenames)])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord)
    step, rows = 0, 0
    try:
        while not coord.should_stop():
            value, keys, _ = sess.run([loss, batch["key"], train])
            rows += len(keys)
            print("step %d: %d rows to %s, loss %.4f" % (step, len(keys), os.path.basename(keys[-1].decode()), value))
            step += 1
    except tf.errors.OutOfRangeError:
        print("end of input after %d rows" % rows)
    finally:
        coord.request_stop()
        coord.join(threads)
    print(
        "records: %d of %d files"
        % (sess.run(reader.num_records_produced()), sess.run(reader.num_work_units_completed()))
    )
shutil.rmtree(folder)
