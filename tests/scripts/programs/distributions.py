"""Densities, statistics and seeded samples of tf.contrib.distributions, and its bijectors."""

import numpy as np
import tensorflow as tf

tfd = tf.contrib.distributions
tfb = tfd.bijectors

tril = np.float32([[1.0, 0.0], [0.5, 2.0]])
made = {
    "diag": tfd.MultivariateNormalDiag([1.0, 2.0], [0.5, 1.5]),
    "identity": tfd.MultivariateNormalDiag(loc=[1.0, 2.0], scale_identity_multiplier=0.7),
    "softplus": tfd.MultivariateNormalDiagWithSoftplusScale([0.0, 1.0], [0.3, -0.2]),
    "tril": tfd.MultivariateNormalTriL([[1.0, 2.0], [0.0, 0.0]], tril),
    "full": tfd.MultivariateNormalFullCovariance([0.0, 1.0], [[2.0, 0.3], [0.3, 1.0]]),
    "independent": tfd.Independent(tfd.Normal([0.0, 1.0], [1.0, 2.0]), 1),
    "same_family": tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 1.0], [0.1, 0.5])),
    "mixture": tfd.Mixture(tfd.Categorical(probs=[0.4, 0.6]), [tfd.Normal(-1.0, 0.5), tfd.Normal(2.0, 1.0)]),
    "logistic": tfd.Logistic([0.0, 1.0], 2.0),
    "half_normal": tfd.HalfNormal([1.0, 2.0]),
    "poisson": tfd.Poisson([1.5, 4.0]),
    "binomial": tfd.Binomial(total_count=[4.0, 6.0], probs=0.3),
    "chi2": tfd.Chi2([2.0, 3.0]),
    "normal_softplus": tfd.NormalWithSoftplusScale(0.5, [0.1, 1.0]),
    "log_normal": tfd.TransformedDistribution(tfd.Normal(0.0, [0.5, 1.0]), tfb.Exp()),
    "affine": tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Affine([1.0, 2.0], scale_tril=tril), event_shape=[2]),
    "one_hot": tfd.OneHotCategorical(probs=[0.2, 0.8]),
    "relaxed": tfd.RelaxedOneHotCategorical(0.7, logits=[0.3, -0.1]),
    "relaxed_bernoulli": tfd.RelaxedBernoulli(0.7, probs=[0.3, 0.6]),
    "deterministic": tfd.Deterministic([1.0, 2.0]),
    "cauchy": tfd.Cauchy([0.0, 1.0], 2.0),
}  # fmt: skip
value = tf.constant([0.25, 0.75])
discrete = {"poisson": [2.0, 5.0], "binomial": [1.0, 3.0], "one_hot": [0.0, 1.0]}
with tf.Session() as sess:

    def show(name, what, function):
        try:
            found = sess.run(function())
        except NotImplementedError:
            print(name, what, "NotImplementedError")
            return
        print(name, what, found.shape, " ".join("%.4f" % each for each in np.ravel(found)))

    for name in sorted(made):
        each = made[name]
        print(
            name,
            each.batch_shape,
            each.event_shape,
            each.dtype,
            each.reparameterization_type is tfd.FULLY_REPARAMETERIZED,
        )
        at = discrete.get(name, value)
        show(name, "log_prob", lambda: each.log_prob(at))
        show(name, "prob", lambda: each.prob(at))
        for what in ("mean", "variance", "stddev", "entropy", "mode", "covariance"):
            if (name, what) in (
                ("cauchy", "mean"),
                ("affine", "mean"),
                ("one_hot", "mean"),
                ("one_hot", "mode"),
                ("one_hot", "covariance"),
            ):
                continue
            show(name, what, getattr(each, what))
        if not name.startswith(("mixture", "same_family", "binomial", "poisson", "chi2")):
            show(name, "sample", lambda: tf.cast(each.sample([2], seed=5), tf.float32))
        if name in ("logistic", "half_normal", "cauchy", "log_normal", "deterministic", "poisson", "mixture"):
            show(name, "cdf", lambda: each.cdf(at))
    for a, b in (
        ("diag", "identity"),
        ("tril", "full"),
        ("full", "diag"),
        ("diag", "tril"),
        ("independent", "independent"),
    ):
        show(a, "kl to " + b, lambda: tfd.kl_divergence(made[a], made[b]))
    x = tf.constant([[0.5, 1.5], [0.2, 0.9]])
    for bijector in (tfb.Exp(), tfb.Sigmoid(), tfb.Softplus(), tfb.Identity(), tfb.AffineScalar(1.0, 2.0), tfb.Square(), tfb.Invert(tfb.Exp()),
                     tfb.Chain([tfb.Exp(), tfb.AffineScalar(scale=2.0)]), tfb.Affine([1.0, 0.0], scale_diag=[2.0, 3.0]),
                     tfb.Affine(scale_identity_multiplier=2.0), tfb.Permute([1, 0]), tfb.Softplus(hinge_softness=2.0)):  # fmt: skip
        least = bijector.forward_min_event_ndims
        y = bijector.forward(x)
        show(bijector.name, "forward", lambda: y)
        show(bijector.name, "inverse", lambda: bijector.inverse(tf.identity(y)))
        # A Jacobian that is the same everywhere is one number in 1.15, and one for each event here.
        for ndims in () if bijector.is_constant_jacobian else range(least, 2):
            show(bijector.name, "jacobian", lambda: bijector.forward_log_det_jacobian(x, event_ndims=ndims))
            show(
                bijector.name,
                "inverse jacobian",
                lambda: bijector.inverse_log_det_jacobian(tf.identity(y), event_ndims=ndims),
            )
    show("triangle", "", lambda: tfd.fill_triangular([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    show("triangle", "upper", lambda: tfd.fill_triangular([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], upper=True))
