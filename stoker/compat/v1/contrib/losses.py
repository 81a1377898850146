"""Public names of tf.contrib.losses."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.losses import absolute_difference as absolute_difference
from stoker._src.contrib.losses import compute_weighted_loss as compute_weighted_loss
from stoker._src.contrib.losses import cosine_distance as cosine_distance
from stoker._src.contrib.losses import get_total_loss as get_total_loss
from stoker._src.contrib.losses import hinge_loss as hinge_loss
from stoker._src.contrib.losses import log_loss as log_loss
from stoker._src.contrib.losses import mean_pairwise_squared_error as mean_pairwise_squared_error
from stoker._src.contrib.losses import mean_squared_error as mean_squared_error
from stoker._src.contrib.losses import sigmoid_cross_entropy as sigmoid_cross_entropy
from stoker._src.contrib.losses import softmax_cross_entropy as softmax_cross_entropy
from stoker._src.contrib.losses import sparse_softmax_cross_entropy as sparse_softmax_cross_entropy
from stoker._src.layers.losses import add_loss as add_loss
from stoker._src.layers.losses import get_losses as get_losses
from stoker._src.layers.losses import get_regularization_losses as get_regularization_losses
