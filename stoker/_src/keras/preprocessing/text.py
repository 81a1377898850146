"""`tf.keras.preprocessing.text`: words as numbers."""

from __future__ import annotations

import collections
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker._src.base.export import export

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


@export("keras.preprocessing.text.text_to_word_sequence")
def text_to_word_sequence(text: str, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> list[str]:
    """The words of a text: characters of `filters` count as `split`, where it is divided."""
    text = text.lower() if lower else text
    return [word for word in text.translate(str.maketrans(dict.fromkeys(filters, split))).split(split) if word]


@export("keras.preprocessing.text.one_hot")
def one_hot(text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> list[int]:
    """Numbers from 1 to n - 1 of words, by Python's hash."""
    return hashing_trick(text, n, hash, filters, lower, split)


@export("keras.preprocessing.text.hashing_trick")
def hashing_trick(
    text: str, n: int, hash_function: Any = None, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[int]:
    """Numbers from 1 to n - 1 of words, by a hash: Python's, "md5" or a function."""
    if hash_function is None:
        hash_function = hash
    elif hash_function == "md5":
        hash_function = _md5
    return [hash_function(word) % (n - 1) + 1 for word in text_to_word_sequence(text, filters, lower, split)]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


@export("keras.preprocessing.text.Tokenizer")
class Tokenizer:
    """Numbers words by how often they occur: the most frequent one is 1, 0 is padding.

    Args:
        num_words: words with this number or a larger one are left out.
        filters: characters that are removed.
        lower: whether to make letters small.
        split: what divides words.
        char_level: whether each character is a word.
        oov_token: the word that stands for those that are unknown; it gets the number 1.
        document_count: the number of texts that were seen.
        **kwargs: `nb_words`, the old name of `num_words`.

    Raises:
        TypeError: an argument is unknown.
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        document_count: int = 0,
        **kwargs: Any,
    ) -> None:
        num_words = kwargs.pop("nb_words", num_words)
        document_count = kwargs.pop("document_count", document_count)
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.document_count = char_level, oov_token, document_count
        self.word_counts: Any = collections.OrderedDict()
        self.word_docs: Any = collections.defaultdict(int)
        self.index_docs: Any = collections.defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Any:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return text
            return [each.lower() for each in text] if isinstance(text, list) else text.lower()
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Any) -> None:
        """Counts the words of texts and numbers them."""
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=self.word_counts.__getitem__, reverse=True)
        ordered = ordered if self.oov_token is None else [self.oov_token, *ordered]
        self.word_index = {word: number for number, word in enumerate(ordered, 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Any) -> None:
        """Counts in how many sequences each number occurs, for `sequences_to_matrix`."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] += 1

    def texts_to_sequences(self, texts: Any) -> list[list[int]]:
        """The numbers of the words of each text. Unknown words are left out, or have the number of `oov_token`."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Any) -> Iterator[list[int]]:
        unknown = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for text in texts:
            found = []
            for word in self._words(text):
                number = self.word_index.get(word)
                if number is None or (self.num_words and number >= self.num_words):
                    number = unknown
                if number is not None:
                    found.append(number)
            yield found

    def sequences_to_texts(self, sequences: Any) -> list[str]:
        """The words of numbers, with spaces between them."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Any) -> Iterator[str]:
        unknown = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for sequence in sequences:
            words = []
            for number in sequence:
                word = self.index_word.get(number)
                if word is None or (self.num_words and number >= self.num_words):
                    word = None if unknown is None else self.index_word[unknown]
                if word is not None:
                    words.append(word)
            yield " ".join(words)

    def texts_to_matrix(self, texts: Any, mode: str = "binary") -> np.ndarray:
        """A row for each text: see `sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Any, mode: str = "binary") -> np.ndarray:
        """A row for each sequence with a column for each number: whether ("binary"), how often ("count"), or what part of the sequence it
        is ("freq"), or its weight by how rare it is ("tfidf").

        Raises:
            ValueError: the mode is unknown, or the tokenizer has seen no text.
        """
        if not self.num_words and not self.word_index:
            raise ValueError("Specify a dimension (`num_words` argument), or fit on some text data first.")
        columns = self.num_words or len(self.word_index) + 1
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        found = np.zeros((len(sequences), columns))
        for row, sequence in enumerate(sequences):
            counts = collections.Counter(number for number in sequence if number < columns)
            for number, count in counts.items():
                if mode == "count":
                    found[row, number] = count
                elif mode == "freq":
                    found[row, number] = count / len(sequence)
                elif mode == "binary":
                    found[row, number] = 1
                elif mode == "tfidf":
                    rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
                    found[row, number] = (1 + np.log(count)) * rarity
                else:
                    raise ValueError("Unknown vectorization mode:", mode)
        return found

    def get_config(self) -> dict[str, Any]:
        """The arguments, and what was counted as JSON."""
        names = "num_words filters lower split char_level oov_token document_count".split()
        counted = "word_counts word_docs index_docs index_word word_index".split()
        return {
            **{name: getattr(self, name) for name in names},
            **{name: json.dumps(getattr(self, name)) for name in counted},
        }

    def to_json(self, **kwargs: Any) -> str:
        """The tokenizer as JSON, for `tokenizer_from_json`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


@export("keras.preprocessing.text.tokenizer_from_json")
def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The tokenizer that `to_json` described."""
    config = json.loads(json_string)["config"]
    counted = {name: json.loads(config.pop(name)) for name in ("word_counts", "word_docs", "word_index")}
    by_number = {name: json.loads(config.pop(name)) for name in ("index_docs", "index_word")}
    made = Tokenizer(**config)
    for name, value in counted.items():
        setattr(made, name, value)
    for name, value in by_number.items():
        setattr(made, name, {int(key): each for key, each in value.items()})
    return made
