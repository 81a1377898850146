"""A language model in the manner of the PTB tutorial: three models in one graph, batches from a queue, the meta graph exported, imported and supervised."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class SmallConfig:
    init_scale, learning_rate, max_grad_norm, num_layers = 0.1, 1.0, 5, 2
    num_steps, hidden_size, max_epoch, max_max_epoch = 6, 10, 1, 3
    keep_prob, lr_decay, batch_size, vocab_size = 1.0, 0.5, 4, 15


def ptb_producer(raw_data, batch_size, num_steps, name=None):
    with tf.name_scope(name, "PTBProducer", [raw_data, batch_size, num_steps]):
        raw_data = tf.convert_to_tensor(raw_data, name="raw_data", dtype=tf.int32)
        data_len = tf.size(raw_data)
        batch_len = data_len // batch_size
        data = tf.reshape(raw_data[0 : batch_size * batch_len], [batch_size, batch_len])
        epoch_size = (batch_len - 1) // num_steps
        assertion = tf.assert_positive(epoch_size, message="epoch_size == 0, decrease batch_size or num_steps")
        with tf.control_dependencies([assertion]):
            epoch_size = tf.identity(epoch_size, name="epoch_size")
        i = tf.train.range_input_producer(epoch_size, shuffle=False).dequeue()
        x = tf.strided_slice(data, [0, i * num_steps], [batch_size, (i + 1) * num_steps])
        x.set_shape([batch_size, num_steps])
        y = tf.strided_slice(data, [0, i * num_steps + 1], [batch_size, (i + 1) * num_steps + 1])
        y.set_shape([batch_size, num_steps])
        return x, y


class PTBInput:
    def __init__(self, config, data, name=None):
        self.batch_size, self.num_steps = config.batch_size, config.num_steps
        self.epoch_size = ((len(data) // self.batch_size) - 1) // self.num_steps
        self.input_data, self.targets = ptb_producer(data, self.batch_size, self.num_steps, name=name)


def import_state_tuples(state_tuples, name, num_replicas):
    restored = []
    for i in range(len(state_tuples) * num_replicas):
        c = tf.get_collection_ref(name)[2 * i + 0]
        h = tf.get_collection_ref(name)[2 * i + 1]
        restored.append(tf.nn.rnn_cell.LSTMStateTuple(c, h))
    return tuple(restored)


def export_state_tuples(state_tuples, name):
    for state_tuple in state_tuples:
        tf.add_to_collection(name, state_tuple.c)
        tf.add_to_collection(name, state_tuple.h)


def with_prefix(prefix, name):
    return "/".join((prefix, name))


class PTBModel:
    def __init__(self, is_training, config, input_):
        self._is_training, self._input = is_training, input_
        self.batch_size, self.num_steps = input_.batch_size, input_.num_steps
        size, vocab_size = config.hidden_size, config.vocab_size
        with tf.device("/cpu:0"):
            embedding = tf.get_variable("embedding", [vocab_size, size], dtype=tf.float32)
            inputs = tf.nn.embedding_lookup(embedding, input_.input_data)
        if is_training and config.keep_prob < 1:
            inputs = tf.nn.dropout(inputs, config.keep_prob)

        def make_cell():
            cell = tf.nn.rnn_cell.BasicLSTMCell(
                size, forget_bias=0.0, state_is_tuple=True, reuse=tf.get_variable_scope().reuse
            )
            return tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=config.keep_prob) if is_training else cell

        cell = tf.nn.rnn_cell.MultiRNNCell([make_cell() for _ in range(config.num_layers)], state_is_tuple=True)
        self._initial_state = cell.zero_state(config.batch_size, tf.float32)
        state = self._initial_state
        outputs = []
        with tf.variable_scope("RNN"):
            for time_step in range(self.num_steps):
                if time_step > 0:
                    tf.get_variable_scope().reuse_variables()
                (cell_output, state) = cell(inputs[:, time_step, :], state)
                outputs.append(cell_output)
        output = tf.reshape(tf.concat(outputs, 1), [-1, size])
        softmax_w = tf.get_variable("softmax_w", [size, vocab_size], dtype=tf.float32)
        softmax_b = tf.get_variable("softmax_b", [vocab_size], dtype=tf.float32)
        logits = tf.reshape(
            tf.nn.xw_plus_b(output, softmax_w, softmax_b), [self.batch_size, self.num_steps, vocab_size]
        )
        per_example = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=input_.targets, logits=logits)
        self._cost = tf.reduce_sum(tf.reduce_mean(per_example, 0))
        self._final_state = state
        if not is_training:
            return
        self._lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self._cost, tvars), config.max_grad_norm)
        optimizer = tf.train.GradientDescentOptimizer(self._lr)
        self._train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=tf.train.get_or_create_global_step())
        self._new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self._lr_update = tf.assign(self._lr, self._new_lr)

    def assign_lr(self, session, lr_value):
        session.run(self._lr_update, feed_dict={self._new_lr: lr_value})

    def export_ops(self, name):
        self._name = name
        ops = {with_prefix(self._name, "cost"): self._cost}
        if self._is_training:
            ops.update(lr=self._lr, new_lr=self._new_lr, lr_update=self._lr_update, train_op=self._train_op)
        for name, op in ops.items():
            tf.add_to_collection(name, op)
        self._initial_state_name = with_prefix(self._name, "initial")
        self._final_state_name = with_prefix(self._name, "final")
        export_state_tuples(self._initial_state, self._initial_state_name)
        export_state_tuples(self._final_state, self._final_state_name)

    def import_ops(self):
        if self._is_training:
            self._train_op = tf.get_collection_ref("train_op")[0]
            self._lr = tf.get_collection_ref("lr")[0]
            self._new_lr = tf.get_collection_ref("new_lr")[0]
            self._lr_update = tf.get_collection_ref("lr_update")[0]
        self._cost = tf.get_collection_ref(with_prefix(self._name, "cost"))[0]
        self._initial_state = import_state_tuples(self._initial_state, self._initial_state_name, 1)
        self._final_state = import_state_tuples(self._final_state, self._final_state_name, 1)


def run_epoch(session, model, eval_op=None, verbose=False):
    costs, iters = 0.0, 0
    state = session.run(model._initial_state)
    fetches = {"cost": model._cost, "final_state": model._final_state}
    if eval_op is not None:
        fetches["eval_op"] = eval_op
    for step in range(model._input.epoch_size):
        feed_dict = {}
        for i, (c, h) in enumerate(model._initial_state):
            feed_dict[c] = state[i].c
            feed_dict[h] = state[i].h
        vals = session.run(fetches, feed_dict)
        state = vals["final_state"]
        costs += vals["cost"]
        iters += model._input.num_steps
        if verbose and step % (model._input.epoch_size // 3) == 0:
            print("%.3f perplexity: %.3f" % (step * 1.0 / model._input.epoch_size, np.exp(costs / iters)))
    return np.exp(costs / iters)


def corpus(rng, length, vocabulary):
    words = [0]
    for _ in range(length - 1):
        words.append((words[-1] * 2 + 1 + rng.randint(2)) % vocabulary)
    return words


def main():
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    rng = np.random.RandomState(9)
    config, eval_config = SmallConfig(), SmallConfig()
    eval_config.batch_size = eval_config.num_steps = 1
    train_data, valid_data, test_data = (corpus(rng, n, config.vocab_size) for n in (300, 100, 40))
    with tf.Graph().as_default():
        initializer = tf.random_uniform_initializer(-config.init_scale, config.init_scale, seed=3)
        with tf.name_scope("Train"):
            train_input = PTBInput(config=config, data=train_data, name="TrainInput")
            with tf.variable_scope("Model", reuse=None, initializer=initializer):
                m = PTBModel(is_training=True, config=config, input_=train_input)
            tf.summary.scalar("Training Loss", m._cost)
            tf.summary.scalar("Learning Rate", m._lr)
        with tf.name_scope("Valid"):
            valid_input = PTBInput(config=config, data=valid_data, name="ValidInput")
            with tf.variable_scope("Model", reuse=True, initializer=initializer):
                mvalid = PTBModel(is_training=False, config=config, input_=valid_input)
            tf.summary.scalar("Validation Loss", mvalid._cost)
        with tf.name_scope("Test"):
            test_input = PTBInput(config=eval_config, data=test_data, name="TestInput")
            with tf.variable_scope("Model", reuse=True, initializer=initializer):
                mtest = PTBModel(is_training=False, config=eval_config, input_=test_input)
        models = {"Train": m, "Valid": mvalid, "Test": mtest}
        for name, model in models.items():
            model.export_ops(name)
        metagraph = tf.train.export_meta_graph()
    print(sorted(metagraph.collection_def))
    print(sorted(node.name for node in metagraph.graph_def.node if "Summary" in node.op))
    with tf.Graph().as_default():
        tf.train.import_meta_graph(metagraph)
        for model in models.values():
            model.import_ops()
        print([v.op.name for v in tf.trainable_variables()])
        sv = tf.train.Supervisor(logdir=logdir, save_summaries_secs=0, save_model_secs=0)
        config_proto = tf.ConfigProto(allow_soft_placement=False)
        with sv.managed_session(config=config_proto) as session:
            for i in range(config.max_max_epoch):
                lr_decay = config.lr_decay ** max(i + 1 - config.max_epoch, 0.0)
                m.assign_lr(session, config.learning_rate * lr_decay)
                print("Epoch: %d Learning rate: %.3f" % (i + 1, session.run(m._lr)))
                train_perplexity = run_epoch(session, m, eval_op=m._train_op, verbose=True)
                print("Epoch: %d Train Perplexity: %.3f" % (i + 1, train_perplexity))
                print("Epoch: %d Valid Perplexity: %.3f" % (i + 1, run_epoch(session, mvalid)))
            print("Test Perplexity: %.3f" % run_epoch(session, mtest))
            print("Saving model to", os.path.basename(sv.save_path))
            sv.saver.save(session, sv.save_path, global_step=sv.global_step)
    print([(name, shape) for name, shape in tf.train.list_variables(logdir)])


if __name__ == "__main__":
    main()
