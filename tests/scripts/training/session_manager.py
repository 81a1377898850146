"""A SessionManager by hand: what is ready and what not, restoring, waiting, and the errors on the way."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def attempt(title, function):
    try:
        result = function()
    except Exception as error:  # what is raised is what is compared
        print(title, type(error).__name__, str(error).split("\n")[0].replace(FLAGS.logdir or "", "")[:100])
        return None
    print(title, "ok")
    return result


def main():
    logdir = FLAGS.logdir = FLAGS.logdir or tempfile.mkdtemp()
    v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), collections=[tf.GraphKeys.LOCAL_VARIABLES])
    init = tf.global_variables_initializer()
    local_init = tf.variables_initializer([count])
    saver = tf.train.Saver({"v": v, "w": w})
    ready = tf.report_uninitialized_variables()
    ready_for_local = tf.report_uninitialized_variables(tf.global_variables())
    init_v = tf.variables_initializer([v])
    double = tf.assign(w, w * 2)
    attempt("local only", lambda: tf.train.SessionManager(ready_for_local_init_op=ready_for_local))
    manager = tf.train.SessionManager(
        ready_op=ready, ready_for_local_init_op=ready_for_local, local_init_op=local_init, recovery_wait_secs=1
    )
    attempt("nothing to start from", lambda: manager.prepare_session("", saver=saver, checkpoint_dir=logdir))
    attempt("half of it", lambda: manager.prepare_session("", init_op=init_v))
    attempt(
        "both paths",
        lambda: manager.prepare_session("", init, saver, checkpoint_dir=logdir, checkpoint_filename_with_path=logdir),
    )
    sess = attempt(
        "init",
        lambda: manager.prepare_session(
            "", init_op=init, saver=saver, checkpoint_dir=logdir, init_fn=lambda s: s.run(double)
        ),
    )
    print(*(value.tolist() for value in sess.run([v, w, count])))
    saver.save(sess, os.path.join(logdir, "model"), global_step=3)
    sess.close()

    sess, restored = manager.recover_session("", saver, checkpoint_dir=logdir)
    print("recovered", restored, sess.run(w))
    sess.close()
    sess, restored = manager.recover_session("", saver, checkpoint_dir=os.path.join(logdir, "empty"))
    print("recovered", restored, sess.run(ready).tolist())
    sess.close()
    sess, restored = manager.recover_session("", saver)
    print("recovered", restored)
    sess.close()
    sess = manager.prepare_session(
        "",
        init,
        saver,
        checkpoint_filename_with_path=os.path.join(logdir, "model-3"),
        init_fn=lambda s: print("not called"),
    )
    print(*(value.tolist() for value in sess.run([v, w, count])))
    sess.close()
    attempt(
        "not written",
        lambda: manager.prepare_session("", init, saver, checkpoint_filename_with_path=os.path.join(logdir, "model-4")),
    )
    attempt("waits", lambda: manager.wait_for_session("", max_wait_secs=1))
    attempt(
        "waits for a checkpoint",
        lambda: manager.prepare_session(
            "", saver=saver, checkpoint_dir=os.path.join(logdir, "none"), wait_for_checkpoint=True, max_wait_secs=1
        ),
    )
    relaxed = tf.train.SessionManager(ready_op=None, recovery_wait_secs=1)
    sess = attempt("no ready op", lambda: relaxed.wait_for_session("", max_wait_secs=1))
    try:
        sess.run(v)
    except tf.errors.FailedPreconditionError as error:
        print("uninitialized", "uninitialized value v" in error.message)
    sess.close()
    fed = tf.placeholder(tf.float32, [2])
    sess = manager.prepare_session("", init_op=tf.group(init, tf.assign(v, fed)), init_feed_dict={fed: [5.0, 6.0]})
    print(np.shape(sess.run(v)))
    sess.close()


if __name__ == "__main__":
    main()
