"""Public names of tf.nn."""

from stoker._src.ops.array_padding import depth_to_space_v2 as depth_to_space
from stoker._src.ops.array_padding import space_to_batch_v2 as space_to_batch
from stoker._src.ops.array_padding import space_to_depth_v2 as space_to_depth
from stoker._src.ops.math_unary import sigmoid as sigmoid
from stoker._src.ops.math_unary import tanh as tanh
from stoker._src.ops.nn.activations import crelu_v2 as crelu
from stoker._src.ops.nn.activations import elu as elu
from stoker._src.ops.nn.activations import gelu as gelu
from stoker._src.ops.nn.activations import leaky_relu as leaky_relu
from stoker._src.ops.nn.activations import relu as relu
from stoker._src.ops.nn.activations import relu6 as relu6
from stoker._src.ops.nn.activations import selu as selu
from stoker._src.ops.nn.activations import softplus as softplus
from stoker._src.ops.nn.activations import softsign as softsign
from stoker._src.ops.nn.activations import swish as silu
from stoker._src.ops.nn.activations import swish as swish
from stoker._src.ops.nn.bias import bias_add as bias_add
from stoker._src.ops.nn.bias import l2_loss as l2_loss
from stoker._src.ops.nn.bias import zero_fraction as zero_fraction
from stoker._src.ops.nn.cross_entropy import log_poisson_loss as log_poisson_loss
from stoker._src.ops.nn.cross_entropy import sigmoid_cross_entropy_with_logits_v2 as sigmoid_cross_entropy_with_logits
from stoker._src.ops.nn.cross_entropy import softmax_cross_entropy_with_logits_2x as softmax_cross_entropy_with_logits
from stoker._src.ops.nn.cross_entropy import sparse_softmax_cross_entropy_with_logits_v2 as sparse_softmax_cross_entropy_with_logits
from stoker._src.ops.nn.cross_entropy import weighted_cross_entropy_with_logits_v2 as weighted_cross_entropy_with_logits
from stoker._src.ops.nn.softmax import log_softmax_v2 as log_softmax
from stoker._src.ops.nn.softmax import softmax_v2 as softmax
