"""A variational autoencoder, and the values of other distributions of tf.contrib."""

import numpy as np
import tensorflow as tf

tfd = tf.contrib.distributions
ds = tf.contrib.distributions


def make_encoder(data, code_size):
    x = tf.layers.flatten(data)
    x = tf.layers.dense(x, 20, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
    loc = tf.layers.dense(x, code_size, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    scale = tf.layers.dense(x, code_size, tf.nn.softplus, kernel_initializer=tf.glorot_uniform_initializer(seed=3))
    return tfd.MultivariateNormalDiag(loc, scale)


def make_prior(code_size):
    return tfd.MultivariateNormalDiag(tf.zeros(code_size), tf.ones(code_size))


def make_decoder(code, data_shape):
    x = tf.layers.dense(code, 20, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=4))
    logit = tf.layers.dense(x, np.prod(data_shape), kernel_initializer=tf.glorot_uniform_initializer(seed=5))
    logit = tf.reshape(logit, [-1] + data_shape)
    return tfd.Independent(tfd.Bernoulli(logit), 2)


make_encoder = tf.make_template("encoder", make_encoder)
make_decoder = tf.make_template("decoder", make_decoder)
data = tf.placeholder(tf.float32, [None, 6, 6])
prior = make_prior(code_size=2)
posterior = make_encoder(data, code_size=2)
code = posterior.sample(seed=11)
likelihood = make_decoder(code, [6, 6]).log_prob(data)
divergence = tfd.kl_divergence(posterior, prior)
elbo = tf.reduce_mean(likelihood - divergence)
optimize = tf.train.AdamOptimizer(0.01).minimize(-elbo)
samples = make_decoder(prior.sample(4, seed=12), [6, 6]).mean()
print(posterior.event_shape, posterior.batch_shape, code.shape, likelihood.shape, posterior)
rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(8):
        e, k, _ = sess.run([elbo, divergence, optimize], {data: (rng.rand(16, 6, 6) > 0.5).astype("f")})
        print("%.4f %.4f" % (e, k.mean()))
    print(np.round(sess.run(samples), 3)[0, 0].tolist())
    print([v.name for v in tf.trainable_variables()])
    n = ds.Normal(0.0, [1.0, 2.0])
    mix = ds.Mixture(cat=ds.Categorical(probs=[0.3, 0.7]), components=[ds.Normal(-1.0, 0.5), ds.Normal(1.0, 2.0)])
    mvn = ds.MultivariateNormalTriL([1.0, 2.0], scale_tril=[[1.0, 0.0], [0.5, 2.0]])
    full = ds.MultivariateNormalFullCovariance([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    ln = ds.TransformedDistribution(ds.Normal(0.0, 1.0), ds.bijectors.Exp(), name="LogNormal")
    rel = ds.RelaxedOneHotCategorical(0.5, logits=[0.1, 0.2, 0.3])
    lo = ds.Logistic(0.5, 2.0)
    po = ds.Poisson([1.0, 3.0])
    bn = ds.Binomial(total_count=5.0, probs=0.3)
    oh = ds.OneHotCategorical(probs=[0.1, 0.4, 0.5])
    q = ds.QuantizedDistribution(ds.Normal(0.0, 3.0), low=-2.0, high=2.0)
    for name, t in [
        ("normal", n.log_prob([0.5, 1.0])),
        ("mix", mix.log_prob([0.2, 0.4])),
        ("mixmean", mix.mean()),
        ("mvn", mvn.log_prob([[0.0, 1.0]])),
        ("mvn_cov", mvn.covariance()),
        ("full", full.log_prob([0.3, 0.4])),
        ("ln", ln.log_prob(2.0)),
        ("logistic", lo.cdf(1.0)),
        ("poisson", po.log_prob([2.0, 4.0])),
        ("binom", bn.prob([0.0, 2.0, 5.0])),
        ("onehot", oh.log_prob([0.0, 1.0, 0.0])),
        ("quant", q.prob([0.0, 1.0])),
        ("kl", ds.kl_divergence(full, mvn)),
        ("entropy", mvn.entropy()),
        ("softplus_inverse", ds.softplus_inverse([0.5, 3.0])),
        ("fill", ds.fill_triangular([1.0, 2.0, 3.0])),
        ("rel", tf.shape(rel.sample(3, seed=1))),
    ]:
        print(name, np.round(sess.run(t), 4).tolist())
