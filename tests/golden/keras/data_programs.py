"""Programs with tf.keras.preprocessing, datasets and utils, for `programs.py`. They need no graph."""

import os
import random

import numpy as np
from programs import failure, program

TEXTS = ["The cat sat on the mat.", "A dog, a cat and the BIRD!", "birds sing\tin trees", ""]


@program
def padded_sequences(tf, folder):
    sequence = tf.keras.preprocessing.sequence
    rows = [[1, 2, 3], [4], [], [5, 6, 7, 8, 9]]
    pad = sequence.pad_sequences
    found = [
        pad(rows),
        pad(rows, maxlen=3),
        pad(rows, maxlen=2, padding="post", truncating="post", value=-1),
        pad(rows, padding="post", dtype="float32", value=0.5),
        pad([[[1, 2]], [[3, 4], [5, 6]]], maxlen=3),
    ]
    errors = [
        failure(pad, 3),
        failure(pad, [1, 2]),
        failure(pad, rows, padding="mid"),
        failure(pad, rows, truncating="mid"),
        failure(pad, rows, value="a"),
        failure(pad, [[1, 2], [[3]]]),
    ]
    return found, errors


@program
def windows_of_series(tf, folder):
    make = tf.keras.preprocessing.sequence.TimeseriesGenerator
    data = np.arange(60).reshape(30, 2)
    first = make(data, np.arange(30), length=5, sampling_rate=2, batch_size=4)
    second = make(data, np.arange(30), length=3, stride=3, start_index=4, end_index=20, reverse=True, batch_size=2)
    config = first.get_config()
    errors = [failure(make, data, np.arange(29), length=2), failure(make, data, np.arange(30), length=40)]
    return len(first), first[0], first[len(first) - 1], len(second), second[1], sorted(config), config["data"], errors


@program
def pairs_of_words(tf, folder):
    sequence = tf.keras.preprocessing.sequence
    random.seed(3)
    one = sequence.skipgrams([1, 2, 0, 3, 4], 10, window_size=2)
    two = sequence.skipgrams([1, 2, 3, 4], 10, window_size=1, negative_samples=0.5, categorical=True, seed=7)
    table = sequence.make_sampling_table(10, 0.01)
    three = sequence.skipgrams([1, 5, 9, 8], 10, negative_samples=0, shuffle=False, sampling_table=table)
    return one, two, table, three


@program
def tokens_of_texts(tf, folder):
    text = tf.keras.preprocessing.text
    found = []
    for options in (
        {},
        {"num_words": 5},
        {"oov_token": "<unk>", "num_words": 6},
        {"char_level": True},
        {"lower": False},
    ):
        tokens = text.Tokenizer(**options)
        tokens.fit_on_texts(TEXTS)
        sequences = tokens.texts_to_sequences([*TEXTS, "the unknown cat"])
        found.append(
            [
                dict(tokens.word_index),
                list(tokens.word_counts.items()),
                sorted(tokens.word_docs.items()),
                tokens.document_count,
                sequences,
                tokens.sequences_to_texts(sequences),
                sorted(tokens.get_config()),
            ]
        )
    tokens = text.Tokenizer()
    tokens.fit_on_texts(TEXTS)
    matrices = [tokens.texts_to_matrix(TEXTS, mode) for mode in ("binary", "count", "freq", "tfidf")]
    lists = text.Tokenizer()
    lists.fit_on_texts([["A", "b"], ["b", "c"]])
    errors = [
        failure(tokens.texts_to_matrix, TEXTS, "other"),
        failure(text.Tokenizer().texts_to_matrix, TEXTS),
        failure(text.Tokenizer(num_words=4).sequences_to_matrix, [[1]], "tfidf"),
        failure(text.Tokenizer, nothing=1),
    ]
    words = [
        text.text_to_word_sequence("One, two;  THREE four!"),
        text.text_to_word_sequence("a-b c", filters="-", lower=False, split="b"),
        text.hashing_trick("the cat sat the", 50, "md5"),
        len(text.one_hot("the cat sat", 50)),
    ]
    return found, matrices, lists.word_index, words, errors


@program
def files_and_batches_ahead(tf, folder):
    utils = tf.keras.utils

    class Squares(utils.Sequence):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return index * index

    enqueuer = utils.OrderedEnqueuer(Squares())
    enqueuer.start(workers=2, max_queue_size=3)
    batches = enqueuer.get()
    squares = [next(batches) for _ in range(7)]
    enqueuer.stop()
    generated = utils.GeneratorEnqueuer(iter([4, 5, 6]))
    generated.start(workers=1)
    found = list(generated.get())
    generated.stop()
    path = os.path.join(folder, "source.txt")
    with open(path, "w") as file:
        file.write("content")
    cached = utils.get_file("copy.txt", "file://" + path, cache_dir=folder)
    with open(cached) as file:
        return squares, found, file.read(), os.path.relpath(cached, folder)
