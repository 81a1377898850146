"""Public names of tf.contrib.tensorboard.plugins.projector."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.projector import EmbeddingInfo as EmbeddingInfo
from stoker._src.contrib.projector import ProjectorConfig as ProjectorConfig
from stoker._src.contrib.projector import SpriteMetadata as SpriteMetadata
from stoker._src.contrib.projector import visualize_embeddings as visualize_embeddings
