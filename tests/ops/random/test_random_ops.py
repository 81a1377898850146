"""The random functions against numbers that TensorFlow drew, and their behaviour with bad input."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import stoker as tf2
import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "random_ops"
_spec = importlib.util.spec_from_file_location("random_ops_cases", GOLDEN / "cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
with np.load(GOLDEN / "values.npz") as _file:
    EXPECTED = {key.replace("|", "/"): _file[key] for key in _file.files}


def _compare(found):
    for name, value in found.items():
        expected = EXPECTED[name]
        assert value.dtype == expected.dtype and value.shape == expected.shape, name
        if value.dtype.kind == "f":
            # Scaling and shifting after the draw may round once differently.
            np.testing.assert_allclose(value, expected, rtol=3e-7 if value.itemsize >= 4 else 1e-3, err_msg=name)
        else:
            np.testing.assert_array_equal(value, expected, err_msg=name)


def test_graph_mode_draws_the_numbers_of_tensorflow():
    """With graph and op seeds, every function draws what TensorFlow draws, run after run."""
    found = cases.draw(tf)
    _compare(found)
    assert {name for name in EXPECTED if not name.startswith(("generator", "eager"))} == set(found)


def test_generators_draw_the_numbers_of_tensorflow(eager):
    """tf.random.Generator gives TensorFlow's numbers and states."""
    _compare(cases.generator_draws(tf2))


def test_eager_mode_draws_the_numbers_of_tensorflow(eager):
    """tf.random.set_seed makes eager functions draw what TensorFlow's draw."""
    _compare(cases.eager_draws(tf2))


def test_gamma_numbers_have_a_derivative():
    """The gradient of a gamma number by alpha is -(dP/dalpha) / density, at the number drawn."""
    alpha = tf.constant([0.2, 1.0, 3.0, 40.0, 500.0], tf.float64)
    drawn = tf.random_gamma([6], alpha, dtype=tf.float64, seed=2)
    gradient = tf.gradients(drawn, alpha)[0]
    with tf.Session() as session:
        numbers, found, a = session.run([drawn, gradient, alpha])
    step = 1e-6 * a
    by_alpha = (scipy.special.gammainc(a + step, numbers) - scipy.special.gammainc(a - step, numbers)) / (2 * step)
    density = np.exp((a - 1) * np.log(numbers) - numbers - scipy.special.gammaln(a))
    np.testing.assert_allclose(found, (-by_alpha / density).sum(0), rtol=1e-5)


def test_stateless_gamma_has_a_derivative():
    """The stateless form has the same gradient, summed over the samples."""
    alpha = tf.constant([0.5, 2.0])
    drawn = tf.random.stateless_gamma([5, 2], [1, 2], alpha)
    gradient = tf.gradients(drawn, alpha)[0]
    with tf.Session() as session:
        assert session.run(gradient).shape == (2,) and np.all(session.run(gradient) > 0)


def test_graph_generators_move_with_every_run():
    """A generator used in a graph keeps its state in the session."""
    generator = tf.random.Generator.from_seed(3)
    numbers = generator.uniform([2])
    with tf.Session() as session:
        session.run(generator.state.initializer)
        first, second = session.run(numbers), session.run(numbers)
        assert not np.array_equal(first, second)
        session.run(generator.reset_from_seed(3))
        np.testing.assert_array_equal(session.run(numbers), first)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tf.multinomial(tf.placeholder_with_default([1.0, 2.0], None), 2), "logits should be a matrix"),
        (lambda: tf.random.stateless_gamma(tf.placeholder_with_default([3], [1]), [1, 2], [1.0, 2.0]), "must end with"),
        (lambda: tf.random.stateless_uniform([2], tf.placeholder_with_default([1, 2, 3], None)), r"shape \[2\], not \[3\]"),
        (lambda: tf.random_poisson([1.0], tf.placeholder_with_default([-2], [1])), "Dimensions must be >= 0"),
        (lambda: tf.nn.uniform_candidate_sampler(tf.placeholder_with_default(np.array([[1, 2]], np.int64), None), 1, 2, True, 5)[0], "num_true"),
        (lambda: tf.nn.uniform_candidate_sampler(np.array([[9]], np.int64), 1, 2, True, 5)[0], "out of range"),
        (lambda: tf.random.stateless_uniform([2], [1, 2], tf.placeholder_with_default(3, []), 3, tf.int32), "Need minval < maxval"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make, text):
    """What a kernel cannot draw from raises InvalidArgumentError when run."""
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=text):
        session.run(make())


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32), ValueError),
        (lambda: tf.random.stateless_uniform([2], [1, 2], alg="other"), ValueError),
        (lambda: tf.random.stateless_uniform([2], [1, 2], alg="threefry"), tf.errors.UnimplementedError),
        (lambda: tf.random.stateless_uniform([2], [1, 2], dtype=tf.string), ValueError),
        (lambda: tf.random.Generator(), TypeError),
        (lambda: tf.random.Generator.from_state([1, 2], 1), ValueError),
        (lambda: tf.random.Generator.from_seed(1).uniform([2], dtype=tf.int32), ValueError),
        (lambda: tf.random_crop(np.zeros([2, 2]), [3, 1]), ValueError),
    ],
)
def test_bad_arguments_are_refused(make, kind):
    """Arguments that cannot be meant raise when the function is called."""
    with pytest.raises(kind):
        make()


def test_vocabulary_files_give_weights(tmp_path):
    """The fixed unigram sampler reads the last column of its file, once."""
    path = tmp_path / "vocabulary.csv"
    path.write_text("a,1\nb,0\nc,0\n")
    drawn = tf.nn.fixed_unigram_candidate_sampler(np.array([[0]], np.int64), 1, 6, False, 3, vocab_file=str(path))[0]
    path_bad = tmp_path / "bad.csv"
    path_bad.write_text("a,1\nb,none\n")
    bad = tf.nn.fixed_unigram_candidate_sampler(np.array([[0]], np.int64), 1, 6, False, 2, vocab_file=str(path_bad))[0]
    with tf.Session() as session:
        assert session.run(drawn).tolist() == [0] * 6
        with pytest.raises(tf.errors.InvalidArgumentError, match="line 2"):
            session.run(bad)


def test_strings_are_shuffled():
    """A tensor of strings is shuffled by rows."""
    with tf.Session() as session:
        shuffled = session.run(tf.random_shuffle(["a", "b", "c"], seed=4))
    assert sorted(shuffled.tolist()) == [b"a", b"b", b"c"]


def test_global_generator(eager):
    """The program's generator can be replaced by one of a given seed."""
    tf2.random.set_global_generator(5)
    first = np.array(tf2.random.get_global_generator().normal([2]))
    tf2.random.set_global_generator(tf2.random.Generator.from_seed(5))
    np.testing.assert_array_equal(np.array(tf2.random.get_global_generator().normal([2])), first)


def test_functions_draw_by_the_seed_they_were_traced_under(eager):
    """A traced function has TensorFlow's numbers for (seed, count of its random ops), and a new seed starts them anew."""
    tf2.random.set_seed(5)

    @tf2.function
    def draw():
        return tf2.stack([tf2.random.uniform([2]), tf2.random.normal([2], seed=4), tf2.random.uniform([2])])

    first = [[0.18286479, 0.68998957], [-0.13512394, 0.57511264], [0.3875184, 0.7485455]]
    np.testing.assert_allclose(draw(), first, rtol=1e-6)
    second = [[0.9363872, 0.651327], [-0.7034366, 1.2803315], [0.9647, 0.26855862]]
    np.testing.assert_allclose(draw(), second, rtol=1e-6)
    tf2.random.set_seed(5)
    np.testing.assert_allclose(draw(), first, rtol=1e-6)


def test_learned_unigrams_follow_the_targets():
    """The learned sampler draws what the targets were before, run after run."""
    drawn, _, _ = tf.nn.learned_unigram_candidate_sampler(tf.fill([500, 1], tf.constant(3, tf.int64)), 1, 9, False, 5)
    with tf.Session() as session:
        session.run(drawn)
        assert np.mean([session.run(drawn) == 3 for _ in range(5)]) > 0.9
