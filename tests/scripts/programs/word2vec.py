"""Skip-grams of a small text: embeddings, noise-contrastive estimation, nearest words."""

import collections

import tensorflow as tf

text = ("the quick brown fox jumps over the lazy dog while the slow red fox sleeps under the old tree " * 20).split()
words = [word for word, _ in collections.Counter(text).most_common()]
ids = {word: i for i, word in enumerate(words)}
data = [ids[word] for word in text]
pairs = [(data[i], data[i + d]) for i in range(1, len(data) - 1) for d in (-1, 1)]
size, width = len(words), 8

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(3)
    inputs = tf.placeholder(tf.int32, shape=[None])
    labels = tf.placeholder(tf.int32, shape=[None, 1])
    with tf.device("/cpu:0"):
        embeddings = tf.Variable(tf.random_uniform([size, width], -1.0, 1.0, seed=5))
        embed = tf.nn.embedding_lookup(embeddings, inputs)
        nce_weights = tf.Variable(tf.truncated_normal([size, width], stddev=0.3, seed=6))
        nce_biases = tf.Variable(tf.zeros([size]))
    sampled = tf.nn.log_uniform_candidate_sampler(
        true_classes=tf.cast(labels, tf.int64), num_true=1, num_sampled=4, unique=True, range_max=size, seed=8
    )
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights=nce_weights,
            biases=nce_biases,
            labels=labels,
            inputs=embed,
            num_sampled=4,
            num_classes=size,
            sampled_values=sampled,
        )
    )
    optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    similarity = tf.matmul(embeddings / norm, embeddings / norm, transpose_b=True)
    init = tf.global_variables_initializer()

with tf.Session(graph=graph) as session:
    init.run()
    total = 0.0
    for step in range(60):
        batch = [pairs[(step * 16 + k) % len(pairs)] for k in range(16)]
        feed = {inputs: [a for a, _ in batch], labels: [[b] for _, b in batch]}
        _, value = session.run([optimizer, loss], feed_dict=feed)
        total += value
        if step % 20 == 19:
            print("average loss at step %d: %.4f" % (step, total / 20))
            total = 0.0
    nearest = (-similarity.eval()[ids["fox"]]).argsort()[1:3]
    print("nearest to fox: %s" % [words[i] for i in nearest])
