"""Writes values.json: statistics, densities, samples and gradients of distributions, by TensorFlow 2.

python tests/golden/distributions/make.py     (under TensorFlow's interpreter)
"""

import json
from pathlib import Path

import numpy as np

VALUES = Path(__file__).with_name("values.json")
f = np.float32
ROWS = f([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
CASES = {
    "Normal": (lambda d: d.Normal(f([0, 1]), f([[1], [2]])), f([[0.5, 2], [-40, -1]])),
    "Normal of scalars": (lambda d: d.Normal(0.0, 1.0), f(0.3)),
    "Bernoulli": (lambda d: d.Bernoulli(probs=f([0.2, 0.7, 0.5])), np.int32([0, 1, 1])),
    "Bernoulli of logits": (lambda d: d.Bernoulli(logits=f([-1, 2]), dtype="float32"), f([0, 1])),
    "Categorical": (lambda d: d.Categorical(probs=ROWS), np.int32([0, 2])),
    "Categorical of logits": (lambda d: d.Categorical(logits=f([0.2, 0.3, 0.5, 1])), np.int32(2)),
    "Uniform": (lambda d: d.Uniform(f([0, -1]), f([2, 3])), f([0.5, 5])),
    "Gamma": (lambda d: d.Gamma(f([2, 0.5]), f([1, 3])), f([0.5, 2])),
    "Exponential": (lambda d: d.Exponential(f([1, 3])), f([0.5, 2])),
    "Beta": (lambda d: d.Beta(f([2, 0.5]), f([1, 3])), f([0.5, 0.2])),
    "Dirichlet": (lambda d: d.Dirichlet(f([[2, 0.5, 1], [1, 1, 1]])), f([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]])),
    "Laplace": (lambda d: d.Laplace(f([2, 0.5]), f([1, 3])), f([0.5, 2])),
    "StudentT": (lambda d: d.StudentT(f([3, 0.5]), f([1, 3]), f([1, 2])), f([0.5, 2])),
    "Multinomial": (lambda d: d.Multinomial(4.0, logits=f([0.2, 0.3, 0.5])), f([1, 2, 1])),
    "Multinomial of a batch": (lambda d: d.Multinomial(f([4, 5]), probs=ROWS), f([[1, 2, 1], [0, 0, 5]])),
    "DirichletMultinomial": (lambda d: d.DirichletMultinomial(4.0, ROWS * 10), f([[1, 2, 1], [0, 0, 4]])),
}  # fmt: skip
PAIRS = {
    "Normal": lambda d: (d.Normal(f([0, 1]), f(2)), d.Normal(f(1), f([0.5, 3]))),
    "Bernoulli": lambda d: (d.Bernoulli(probs=f([0.2, 0.7])), d.Bernoulli(probs=f([0.5, 0.1]))),
    "Categorical": lambda d: (d.Categorical(probs=f([0.2, 0.8])), d.Categorical(probs=f([0.5, 0.5]))),
    "Gamma": lambda d: (d.Gamma(f(2), f(1)), d.Gamma(f(3), f(0.5))),
    "Exponential": lambda d: (d.Exponential(1.0), d.Exponential(2.0)),
    "Beta": lambda d: (d.Beta(f(2), f(1)), d.Beta(f(3), f(0.5))),
    "Dirichlet": lambda d: (d.Dirichlet(f([2, 1])), d.Dirichlet(f([3, 0.5]))),
    "Normal and Gamma": lambda d: (d.Normal(0.0, 1.0), d.Gamma(1.0, 1.0)),
    "Uniform": lambda d: (d.Uniform(0.0, 1.0), d.Uniform(0.0, 2.0)),
}
STATISTICS = ("mean", "variance", "stddev", "mode", "entropy", "covariance", "batch_shape_tensor", "event_shape_tensor")
OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function")
PARAMETERS = ("loc", "scale", "probs", "concentration", "rate", "df")
# TensorFlow's own result depends on which of its threads is first, is an error of its shapes, or a loop's zeros for no gradient.
LEFT_OUT = {"Multinomial of a batch sample", "Dirichlet mode", "Multinomial of a batch slopes of samples"}


def requests(tf, make, value):
    """What is asked of a distribution, by name."""
    d = tf.distributions

    def slopes(of):
        made = make(d)
        parameters = [getattr(made, name) for name in PARAMETERS if hasattr(made, name)]
        return [g for g in tf.gradients(of(made), parameters) if g is not None]

    found = {name: lambda name=name: getattr(make(d), name)() for name in STATISTICS}
    found |= {name: lambda name=name: getattr(make(d), name)(value) for name in OF_VALUES}
    found["quantile"] = lambda: make(d).quantile(f(0.3))
    found["sample"] = lambda: [make(d).sample((), 3), make(d).sample((2, 3), 11), make(d).sample([4])]
    found["slopes"] = lambda: slopes(lambda made: made.log_prob(tf.constant(value)))
    found["slopes of samples"] = lambda: slopes(lambda made: made.sample(4, seed=2))
    return found


def results(tf):
    """The value of every request, or the name of the class of the error."""
    everything = {}
    for case, (make, value) in CASES.items():
        for name, request in requests(tf, make, value).items():
            everything[f"{case} {name}"] = request
    for case, make in PAIRS.items():
        everything[f"divergence {case}"] = lambda make=make: tf.distributions.kl_divergence(*make(tf.distributions))
    found = {}
    for label, request in everything.items():
        if label in LEFT_OUT:
            continue
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(7)
            try:
                value = session.run(request())
            except Exception as error:
                found[label] = type(error).__name__
                continue
            found[label] = [np.asarray(v).tolist() for v in (value if isinstance(value, list) else [value])]
    return found


if __name__ == "__main__":
    import tensorflow.compat.v1 as oracle

    oracle.disable_eager_execution()
    VALUES.write_text(json.dumps(results(oracle), indent=0, sort_keys=True) + "\n")
