"""A graph built for training and validation, exported as a meta graph, imported again and run under a Supervisor, as language models do."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

VOCABULARY, HIDDEN, BATCH, STEPS = 20, 12, 4, 5


class Model:
    def __init__(self, is_training):
        self.inputs = tf.placeholder(tf.int32, [BATCH, STEPS], name="inputs")
        self.targets = tf.placeholder(tf.int32, [BATCH, STEPS], name="targets")
        embedding = tf.get_variable("embedding", [VOCABULARY, HIDDEN])
        inputs = tf.nn.embedding_lookup(embedding, self.inputs)
        cell = tf.nn.rnn_cell.BasicLSTMCell(HIDDEN, forget_bias=0.0)
        outputs, _ = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), dtype=tf.float32)
        output = tf.reshape(tf.concat(outputs, 1), [-1, HIDDEN])
        logits = tf.layers.dense(output, VOCABULARY, name="softmax")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(self.targets, [-1]), logits=logits)
        self.cost = tf.reduce_sum(losses) / BATCH
        self.train_op = None
        if is_training:
            self.lr = tf.Variable(1.0, trainable=False, name="lr")
            variables = tf.trainable_variables()
            grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, variables), 5)
            self.train_op = tf.train.GradientDescentOptimizer(self.lr).apply_gradients(
                zip(grads, variables), global_step=tf.train.get_or_create_global_step()
            )

    def export_ops(self, name):
        for key, tensor in (
            ("inputs", self.inputs),
            ("targets", self.targets),
            ("cost", self.cost),
            ("train", self.train_op),
        ):
            if tensor is not None:
                tf.add_to_collection(name + "/" + key, tensor)

    def import_ops(self, name):
        def item(key):
            found = tf.get_collection_ref(name + "/" + key)
            return found[0] if found else None

        self.inputs, self.targets, self.cost, self.train_op = map(item, ("inputs", "targets", "cost", "train"))


def epoch(session, model, data):
    total = 0.0
    for start in range(0, data.shape[1] - STEPS - 1, STEPS):
        feed = {model.inputs: data[:, start : start + STEPS], model.targets: data[:, start + 1 : start + STEPS + 1]}
        fetches = {"cost": model.cost}
        if model.train_op is not None:
            fetches["train"] = model.train_op
        total += session.run(fetches, feed)["cost"]
    return total


def main():
    data = np.cumsum(np.random.RandomState(0).randint(0, 3, [BATCH, 61]), axis=1) % VOCABULARY
    with tf.Graph().as_default():
        tf.set_random_seed(4)
        initializer = tf.random_uniform_initializer(-0.1, 0.1, seed=5)
        models = {}
        with tf.name_scope("Train"), tf.variable_scope("Model", initializer=initializer):
            models["Train"] = Model(True)
            tf.summary.scalar("Training Loss", models["Train"].cost)
        with tf.name_scope("Valid"), tf.variable_scope("Model", reuse=True, initializer=initializer):
            models["Valid"] = Model(False)
            tf.summary.scalar("Validation Loss", models["Valid"].cost)
        for name, model in models.items():
            model.export_ops(name)
        metagraph = tf.train.export_meta_graph()
    print(sorted(key for key in metagraph.collection_def if "/" in key))
    print(list(metagraph.collection_def["summaries"].node_list.value))
    directory = tempfile.mkdtemp()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(metagraph)
        for name, model in models.items():
            model.import_ops(name)
        sv = tf.train.Supervisor(logdir=directory, summary_op=None)
        with sv.managed_session(
            config=tf.ConfigProto(allow_soft_placement=True), start_standard_services=False
        ) as session:
            for i in range(3):
                print(
                    "epoch %d train %.4f valid %.4f"
                    % (i, epoch(session, models["Train"], data), epoch(session, models["Valid"], data))
                )
            print(os.path.basename(sv.saver.save(session, sv.save_path, global_step=sv.global_step)))
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
