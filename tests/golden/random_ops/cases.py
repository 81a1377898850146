"""Calls of the random functions, written once for TensorFlow and for stoker; `draw` gives every result by name."""

import numpy as np

LOGITS = np.array([[0.1, 2.0, -1.0], [3.0, 0.0, 0.5]], np.float32)
CLASSES = np.array([[1, 2], [7, 0]], np.int64)
KEY = [3, 9]
BOUNDS = [(-1, 3), (2, 3), (3, 9), (-0.1, 0.1), (4, np.inf)]


def graph_cases(tf):
    """Stateful functions of 1.x: name -> function that makes the tensors."""
    return {
        "multinomial": lambda: tf.multinomial(LOGITS, 7, seed=5),
        "multinomial_int32": lambda: tf.multinomial(LOGITS, 3, seed=5, output_dtype=tf.int32),
        "categorical": lambda: tf.random.categorical(LOGITS, 4),
        "gamma": lambda: tf.random_gamma([3], [0.5, 1.0, 4.0], beta=2.0, seed=6),
        "gamma64": lambda: tf.random_gamma([2, 2], tf.constant([0.3, 7.0], tf.float64), dtype=tf.float64, seed=6),
        "poisson": lambda: tf.random_poisson([0.5, 20.0], [4], seed=7),
        "poisson_int": lambda: tf.random_poisson([3.0], [4], dtype=tf.int32, seed=7),
        "shuffle": lambda: tf.random_shuffle(np.arange(10), seed=8),
        "shuffle_rows": lambda: tf.random_shuffle(np.arange(10).reshape(5, 2)),
        "crop": lambda: tf.random_crop(np.arange(48, dtype=np.float32).reshape(4, 4, 3), [2, 3, 3], seed=9),
        "uniform_sampler": lambda: list(tf.nn.uniform_candidate_sampler(CLASSES, 2, 5, True, 9, seed=1)),
        "log_sampler": lambda: list(tf.nn.log_uniform_candidate_sampler(CLASSES, 2, 5, False, 9, seed=1)),
        "fixed_sampler": lambda: list(
            tf.nn.fixed_unigram_candidate_sampler(CLASSES, 2, 3, True, 8, unigrams=[1, 2, 3, 4, 5, 6, 7, 8.0], seed=1)
        ),
        "all_sampler": lambda: list(tf.nn.all_candidate_sampler(CLASSES, 2, 8, True)),
        "hits": lambda: list(tf.nn.compute_accidental_hits(CLASSES, [0, 1, 5], 2)),
        "uniform_int": lambda: tf.random_uniform([5], 3, 90, tf.int64),
        "bounded": lambda: [_bounded(tf, [4, 8], kind, *BOUNDS[0]) for kind in (tf.float16, tf.float32, tf.float64)],
        "bounded_rows": lambda: [_bounded(tf, [4, 8], tf.float16, *bounds, rows=4) for bounds in BOUNDS],
        "bounded_many": lambda: _bounded(tf, [250], tf.float32, *BOUNDS[1]),
    }


def _bounded(tf, shape, kind, low, high, rows=None):
    """Normal numbers between two bounds, of one parameter set or of one for each row."""
    sets = (tf.constant(x if rows is None else [x] * rows, kind) for x in (0, 1, low, high))
    return tf.raw_ops.ParameterizedTruncatedNormal(
        **dict(zip(("means", "stdevs", "minvals", "maxvals"), sets)), shape=shape, seed=5, seed2=6
    )


def stateless_cases(tf):
    """Stateless functions: name -> function that makes the tensors."""
    random = tf.random
    return {
        "stateless_uniform": lambda: random.stateless_uniform([3], KEY, -1.0, 4.0),
        "stateless_uniform64": lambda: random.stateless_uniform([3], KEY, dtype=tf.float64),
        "stateless_half": lambda: random.stateless_uniform([3], KEY, dtype=tf.float16),
        "stateless_int": lambda: random.stateless_uniform([3], KEY, 2, 900, tf.int64),
        "stateless_full_int": lambda: random.stateless_uniform([3], KEY, None, None, tf.int32),
        "stateless_full_uint": lambda: random.stateless_uniform([3], KEY, None, None, tf.uint64),
        "stateless_normal": lambda: random.stateless_normal([3], KEY, 1.0, 2.0),
        "stateless_truncated": lambda: random.stateless_truncated_normal([3], KEY),
        "stateless_categorical": lambda: random.stateless_categorical(LOGITS, 6, KEY),
        "stateless_binomial": lambda: random.stateless_binomial([4, 2], KEY, [5.0, 100.0], [0.3, 0.5]),
        "stateless_gamma": lambda: random.stateless_gamma([4, 2], KEY, [0.5, 3.0], 2.0),
        "stateless_poisson": lambda: random.stateless_poisson([4, 2], KEY, [0.5, 30.0]),
        "stateless_bounded": lambda: random.stateless_parameterized_truncated_normal([3, 2], KEY, [0.0, 1.0], 2.0),
        "stateless_bounded_half": lambda: [
            random.stateless_parameterized_truncated_normal([7], KEY, *(tf.constant(x, tf.float16) for x in (0, 1, *b)))
            for b in BOUNDS
        ],
        "split": lambda: random.split(KEY, 3),
        "fold_in": lambda: random.fold_in(KEY, 5),
        "stateless_shuffle": lambda: random.experimental.stateless_shuffle(np.arange(9), KEY),
    }


def draw(tf):
    """All results as a dictionary of arrays: two runs of each graph case, so that generators are seen to move."""
    found = {}
    for name, make in {**graph_cases(tf), **stateless_cases(tf)}.items():
        with tf.Graph().as_default():
            tf.set_random_seed(42)
            fetches = make()
            with tf.Session() as session:
                for run in range(2):
                    values = session.run(fetches)
                    for i, value in enumerate(values if isinstance(values, list) else [values]):
                        found[f"{name}/{run}/{i}"] = np.array(value)
    return found


def generator_draws(tf):
    """A Generator's numbers and states (2.x, eager)."""
    generator = tf.random.Generator.from_seed(7)
    found = {}
    for name, make in {
        "normal": lambda: generator.normal([3], 1.0, 2.0),
        "truncated": lambda: generator.truncated_normal([3]),
        "uniform": lambda: generator.uniform([3], -1.0, 1.0),
        "uniform_int": lambda: generator.uniform([3], 0, 90, tf.int32),
        "full_int": lambda: generator.uniform_full_int([3]),
        "full_int64": lambda: generator.uniform([3], None, None, tf.int64),
        "binomial": lambda: generator.binomial([3], 20.0, 0.4),
        "seeds": lambda: generator.make_seeds(2),
        "split": lambda: generator.split(2)[1].state.read_value(),
        "skip": lambda: generator.skip(5),
    }.items():
        found[f"generator/{name}"] = np.array(make())
        found[f"generator/{name}/state"] = np.array(generator.state.read_value())
    for seed in (-5, [1], [1, 2], [1, 2, 3, 4]):
        found[f"generator/seed/{seed}"] = np.array(tf.random.create_rng_state(seed, "philox"))
    found["generator/key"] = np.array(tf.random.Generator.from_key_counter(3, [1, 2], "philox").state.read_value())
    return found


def eager_draws(tf):
    """Eager mode's numbers after `tf.random.set_seed` (2.x)."""
    found = {}
    for name, make in {
        "shuffle": lambda: tf.random.shuffle(np.arange(8)),
        "categorical": lambda: tf.random.categorical(LOGITS, 4, seed=3),
        "gamma": lambda: tf.random.gamma([2], [0.5, 2.0]),
        "poisson": lambda: tf.random.poisson([2], [0.5, 20.0], seed=1),
    }.items():
        tf.random.set_seed(11)
        found[f"eager/{name}/0"] = np.array(make())
        found[f"eager/{name}/1"] = np.array(make())
    return found
