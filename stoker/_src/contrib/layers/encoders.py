"""Embeddings of words and of sequences of words in `tf.contrib.layers`."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.framework.variables import model_variable
from stoker._src.contrib.layers.common import both
from stoker._src.contrib.layers.core import dense_to_sparse
from stoker._src.graph import conversion, scopes, sparse_tensor
from stoker._src.ops.array import gathering, joining, shaping
from stoker._src.ops.math import reductions, sorting
from stoker._src.ops.nn import embedding
from stoker._src.ops.variables import variable_scope


@export(v1=both("safe_embedding_lookup_sparse"))
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = None,
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Any:
    """Embeddings of the ids of each row, combined. Rows without ids get that of `default_id`, or zeros.

    The arguments are those of `tf.nn.safe_embedding_lookup_sparse`; the combiner is "mean" by default.
    """
    return embedding.safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights,
        combiner or "mean",
        default_id,
        name or "embedding_lookup",
        partition_strategy,
        max_norm,
    )


@export(v1=both("embedding_lookup_unique"))
def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None) -> Any:
    """`tf.nn.embedding_lookup` that looks up each id once, which pays where ids repeat and tables are far."""
    with scopes.NameScope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = conversion.convert_to_tensor(ids)
        unique, places = sorting.unique(shaping.reshape(ids, [-1]))
        rows = embedding.embedding_lookup(params, unique, partition_strategy=partition_strategy)
        found = gathering.gather(rows, places)
        outputs = shaping.reshape(found, joining.concat([shaping.shape(ids), shaping.shape(found)[1:]], 0))
        outputs.set_shape(ids.get_shape().concatenate(rows.get_shape()[1:]))
        return outputs


@export(v1=both("embed_sequence"))
def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """[batch, length] ids -> [batch, length, embed_dim], by the variable `embeddings`.

    Args:
        ids: integers.
        vocab_size, embed_dim: the sizes of the table. They may be None where it is used again.
        unique: whether each id is looked up once.
        initializer, regularizer, trainable: of the table.
        scope, reuse: the variable scope.

    Raises:
        ValueError: a size is missing.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not "
            f"reusing. Got vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with variable_scope.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        embeddings = _embeddings(vocab_size, embed_dim, initializer, regularizer, trainable)
        if unique:
            return embedding_lookup_unique(embeddings, ids)
        return embedding.embedding_lookup(embeddings, ids)


@export(v1=both("bow_encoder"))
def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The mean of the embeddings of each row of ids: a bag of words.

    Args:
        ids: a matrix of ids, or a SparseTensor.
        sparse_lookup: whether dense ids are turned into a SparseTensor; 0 then stands for no word.
        others: those of `embed_sequence`.

    Raises:
        TypeError: `ids` is sparse and `sparse_lookup` is False.
    """
    with variable_scope.variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = _embeddings(vocab_size, embed_dim, initializer, regularizer, trainable)
        if sparse_lookup:
            sparse = ids if isinstance(ids, sparse_tensor.SparseTensor) else dense_to_sparse(ids)
            return safe_embedding_lookup_sparse([embeddings], sparse, combiner="mean", default_id=0)
        if isinstance(ids, sparse_tensor.SparseTensor):
            raise TypeError("ids are expected to be dense Tensor, got: %s", ids)
        return reductions.reduce_mean(embedding.embedding_lookup(embeddings, ids), axis=1)


def _embeddings(vocab_size: Any, embed_dim: Any, initializer: Any, regularizer: Any, trainable: bool) -> Any:
    return model_variable(
        "embeddings",
        shape=[vocab_size, embed_dim],
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
    )
