"""`tf.contrib.tensorboard.plugins.projector`: tells TensorBoard which embeddings to show."""

# pyright: reportAttributeAccessIssue=false
# (The generated module builds its classes at import, where a type checker cannot see them.)

from __future__ import annotations

import os
from typing import Any

from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig, SpriteMetadata

from stoker._src.base.export import export, export_constant
from stoker._src.formats import gfile
from stoker._src.formats.message_files import write_message

_PLACE = "contrib.tensorboard.plugins.projector"
for _message in (EmbeddingInfo, ProjectorConfig, SpriteMetadata):
    export_constant(__name__, _message.__name__, v1=f"{_PLACE}.{_message.__name__}")


@export(v1=f"{_PLACE}.visualize_embeddings")
def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes `projector_config.pbtxt` beside a writer's event file; TensorBoard finds the embeddings in the checkpoints there.

    Raises:
        ValueError: the writer has no directory.
    """
    logdir = summary_writer.get_logdir()
    if logdir is None:
        raise ValueError("Summary writer must have a logdir")
    gfile.makedirs(logdir)
    write_message(os.path.join(logdir, "projector_config.pbtxt"), config, as_text=True)
