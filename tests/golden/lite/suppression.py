"""Writes a SavedModel with tf.image.non_max_suppression_padded, which 2.x implements as a function, and what it returns: python suppression.py FOLDER.

`suppression` was written by TensorFlow 2.21. The signatures take one set of boxes without padding and a batch of 2.
"""

import os
import sys

import numpy as np
import tensorflow as tf

BOXES = 24


def suppress(boxes, scores, padded):
    indices, count = tf.image.non_max_suppression_padded(boxes, scores, 8, 0.4, 0.3, pad_to_max_output_size=padded)
    return {"indices": indices, "count": count}


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([BOXES, 4]), tf.TensorSpec([BOXES])])
    def one(self, boxes, scores):
        return suppress(boxes, scores, False)

    @tf.function(input_signature=[tf.TensorSpec([2, BOXES, 4]), tf.TensorSpec([2, BOXES])])
    def batch(self, boxes, scores):
        return suppress(boxes, scores, True)


if __name__ == "__main__":
    random = np.random.RandomState(3)
    corners = random.rand(2, BOXES, 2)
    boxes = np.concatenate([corners, corners + 0.1 + 0.5 * random.rand(2, BOXES, 2)], -1).astype(np.float32)
    boxes[:, :3] = 0  # padding
    scores = random.rand(2, BOXES).astype(np.float32)
    scores[:, :3] = 0.99
    model = Model()
    options = tf.saved_model.SaveOptions(experimental_debug_stripper=True)
    signatures = {"one": model.one, "batch": model.batch}
    tf.saved_model.save(model, sys.argv[1], signatures=signatures, options=options)
    values = {"boxes": boxes, "scores": scores}
    for key, found in (("one", model.one(boxes[0], scores[0])), ("batch", model.batch(boxes, scores))):
        values.update({f"{key}_{name}": value.numpy() for name, value in found.items()})
    np.savez(os.path.join(sys.argv[1], "values.npz"), **values)
