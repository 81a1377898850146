"""`tf.contrib.learn.preprocessing`: documents as vectors of the numbers of their words.

A vocabulary is saved as JSON. TensorFlow pickles its own; such files are not read, since reading them would run code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from stoker._src.base.errors import DataLossError
from stoker._src.base.export import export
from stoker._src.formats import gfile

_PLACE = "contrib.learn.preprocessing"
# Capitals together are a word unless a small letter follows; so is a capitalized word before a capital; else what is not space or punctuation.
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\w'\-]+")


@export(v1=f"{_PLACE}.tokenizer")
def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


@export(v1=f"{_PLACE}.CategoricalVocabulary")
class CategoricalVocabulary:
    """Numbers of categories, in the order of their first appearance; 0 is the unknown one."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token, self._support_reverse = unknown_token, support_reverse
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._reverse_mapping: list[Any] = [unknown_token]
        self._counts: dict[Any, int] = {}
        self._frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Ends, or resumes, the adding of unseen categories."""
        self._frozen = freeze

    def get(self, category: Any) -> int:
        """The number of a category; 0 for an unseen one where the vocabulary is frozen."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a category; unknown ones (0) are not counted."""
        if self.get(category) > 0:
            self._counts[category] = self._counts.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps categories of more than `min_frequency` and, if that is not negative, less than `max_frequency`, most frequent first."""
        ordered = sorted(
            sorted(self._counts.items(), key=lambda each: str(each[0])), key=lambda each: each[1], reverse=True
        )
        kept = [
            (name, count)
            for name, count in ordered
            if count > min_frequency and (max_frequency <= 0 or count < max_frequency)
        ]
        self._counts = dict(kept)
        self._reverse_mapping = [self._unknown_token, *self._counts]
        self._mapping = {name: i for i, name in enumerate(self._reverse_mapping)}

    def reverse(self, class_id: int) -> Any:
        """The category of a number.

        Raises:
            ValueError: the vocabulary was made without reverse look-ups.
        """
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._reverse_mapping[class_id]


@export(v1=f"{_PLACE}.VocabularyProcessor")
class VocabularyProcessor:
    """Documents as vectors of `max_document_length` numbers of words, padded with 0.

    Args:
        max_document_length: longer documents are cut.
        min_frequency: words that `fit` saw this often or less are left out.
        vocabulary: a CategoricalVocabulary to start with.
        tokenizer_fn: a function from an iterator of texts to one of lists of words.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of documents."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Any, unused_y: Any = None) -> Iterator[np.ndarray]:
        """Learns the words of documents and returns their vectors."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """The vectors of documents, of int64 numbers."""
        for words in self._tokenizer(raw_documents):
            numbers = np.zeros(self.max_document_length, np.int64)
            for i, word in enumerate(words[: self.max_document_length]):
                numbers[i] = self.vocabulary_.get(word)
            yield numbers

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The words of vectors, joined by spaces."""
        for numbers in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in numbers)

    def save(self, filename: Any) -> None:
        """Writes the vocabulary and the settings as JSON; a tokenizer function is not saved."""
        words = self.vocabulary_
        contents = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "words": words._reverse_mapping,
            "counts": words._counts,
            "frozen": words._frozen,
        }
        with gfile.GFile(filename, "w") as file:
            file.write(json.dumps(contents))

    @classmethod
    def restore(cls, filename: Any) -> VocabularyProcessor:
        """Reads what `save` wrote.

        Raises:
            DataLossError: the file is none of `save`; TensorFlow's are pickled.
        """
        with gfile.GFile(filename, "rb") as file:
            text = file.read()
        try:
            contents = json.loads(text)
            made = cls(int(contents["max_document_length"]), int(contents["min_frequency"]))
            words = made.vocabulary_
            words._reverse_mapping = [str(word) for word in contents["words"]]
            words._counts = {str(word): int(count) for word, count in contents["counts"].items()}
            words._frozen = bool(contents["frozen"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataLossError(
                None,
                None,
                f"{filename}: no vocabulary that VocabularyProcessor.save of stoker wrote ({error}). TensorFlow pickles "
                "vocabularies, which stoker does not read: fit the processor again.",
            ) from error
        words._mapping = {word: i for i, word in enumerate(words._reverse_mapping)}
        return made


@export(v1=f"{_PLACE}.ByteProcessor")
class ByteProcessor:
    """Documents as vectors of `max_document_length` bytes of their UTF-8, padded with 0."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Returns itself: there is nothing to learn."""
        return self

    def fit_transform(self, x: Any) -> Iterator[np.ndarray]:
        return self.transform(x)

    def transform(self, x: Iterable[Any]) -> Iterator[np.ndarray]:
        for text in x:
            data = np.frombuffer(text.encode() if isinstance(text, str) else bytes(text), np.uint8)
            numbers = np.zeros(self.max_document_length, np.uint8)
            numbers[: len(data)] = data[: self.max_document_length]
            yield numbers

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        for data in x:
            yield bytes(bytearray(int(each) for each in data if each)).decode("utf-8")
