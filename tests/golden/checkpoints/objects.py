"""Writes a checkpoint of objects: python objects.py FOLDER. `objects_tf2` was written by TensorFlow 2.21, `objects_tf1` by 1.15."""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tensorflow

tf = tensorflow.compat.v1
tf.disable_v2_behavior()


def objects():
    """A weight w = [1, 2] trained by Adam for one step of the loss 3 * w, a dense layer of fives, and a module with a list and a dictionary."""
    weight = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    optimizer = tf.train.AdamOptimizer(0.5)
    step = optimizer.minimize(tf.reduce_sum(3.0 * weight), var_list=[weight])
    layer = tf.layers.Dense(2, kernel_initializer=tf.constant_initializer(5.0), name="dense")
    layer(tf.ones([1, 3]))
    module = tf.Module()
    module.items = [tf.Variable(7.0, name="first"), {"a/b": tf.Variable([8, 9], name="second")}]
    return step, tf.train.Checkpoint(weight=weight, optimizer=optimizer, layer=layer, module=module)


if __name__ == "__main__":
    step, checkpoint = objects()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        print(checkpoint.save(os.path.join(sys.argv[1], "model"), session=session))
    os.remove(os.path.join(sys.argv[1], "checkpoint"))
