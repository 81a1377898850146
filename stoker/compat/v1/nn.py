"""Public names of tf.nn."""

from stoker._src.ops.array_padding import depth_to_space as depth_to_space
from stoker._src.ops.array_padding import space_to_batch as space_to_batch
from stoker._src.ops.array_padding import space_to_depth as space_to_depth
from stoker._src.ops.math_unary import sigmoid as sigmoid
from stoker._src.ops.math_unary import tanh as tanh
from stoker._src.ops.nn.activations import crelu as crelu
from stoker._src.ops.nn.activations import elu as elu
from stoker._src.ops.nn.activations import leaky_relu as leaky_relu
from stoker._src.ops.nn.activations import relu as relu
from stoker._src.ops.nn.activations import relu6 as relu6
from stoker._src.ops.nn.activations import selu as selu
from stoker._src.ops.nn.activations import softplus as softplus
from stoker._src.ops.nn.activations import softsign as softsign
from stoker._src.ops.nn.activations import swish as silu
from stoker._src.ops.nn.activations import swish as swish
from stoker._src.ops.nn.batch_norm import fused_batch_norm as fused_batch_norm
from stoker._src.ops.nn.bias import bias_add as bias_add
from stoker._src.ops.nn.bias import l2_loss as l2_loss
from stoker._src.ops.nn.bias import relu_layer as relu_layer
from stoker._src.ops.nn.bias import xw_plus_b as xw_plus_b
from stoker._src.ops.nn.bias import zero_fraction as zero_fraction
from stoker._src.ops.nn.conv_api import atrous_conv2d as atrous_conv2d
from stoker._src.ops.nn.conv_api import atrous_conv2d_transpose as atrous_conv2d_transpose
from stoker._src.ops.nn.conv_api import conv1d as conv1d
from stoker._src.ops.nn.conv_api import conv1d_transpose as conv1d_transpose
from stoker._src.ops.nn.conv_api import conv2d as conv2d
from stoker._src.ops.nn.conv_api import conv2d_backprop_filter as conv2d_backprop_filter
from stoker._src.ops.nn.conv_api import conv2d_backprop_input as conv2d_backprop_input
from stoker._src.ops.nn.conv_api import conv2d_transpose as conv2d_transpose
from stoker._src.ops.nn.conv_api import conv3d as conv3d
from stoker._src.ops.nn.conv_api import conv3d_backprop_filter as conv3d_backprop_filter
from stoker._src.ops.nn.conv_api import conv3d_backprop_filter as conv3d_backprop_filter_v2
from stoker._src.ops.nn.conv_api import conv3d_transpose as conv3d_transpose
from stoker._src.ops.nn.conv_api import conv_transpose as conv_transpose
from stoker._src.ops.nn.conv_api import convolution as convolution
from stoker._src.ops.nn.conv_api import depthwise_conv2d as depthwise_conv2d
from stoker._src.ops.nn.conv_api import depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter
from stoker._src.ops.nn.conv_api import depthwise_conv2d_backprop_filter as depthwise_conv2d_native_backprop_filter
from stoker._src.ops.nn.conv_api import depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input
from stoker._src.ops.nn.conv_api import depthwise_conv2d_backprop_input as depthwise_conv2d_native_backprop_input
from stoker._src.ops.nn.conv_api import depthwise_conv2d_native as depthwise_conv2d_native
from stoker._src.ops.nn.conv_api import separable_conv2d as separable_conv2d
from stoker._src.ops.nn.cross_entropy import log_poisson_loss as log_poisson_loss
from stoker._src.ops.nn.cross_entropy import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from stoker._src.ops.nn.cross_entropy import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from stoker._src.ops.nn.cross_entropy import (
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2,
)
from stoker._src.ops.nn.cross_entropy import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from stoker._src.ops.nn.cross_entropy import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from stoker._src.ops.nn.dilated import with_space_to_batch as with_space_to_batch
from stoker._src.ops.nn.dilation import dilation2d as dilation2d
from stoker._src.ops.nn.dilation import erosion2d as erosion2d
from stoker._src.ops.nn.lrn import local_response_normalization as local_response_normalization
from stoker._src.ops.nn.lrn import local_response_normalization as lrn
from stoker._src.ops.nn.moments import batch_norm_with_global_normalization as batch_norm_with_global_normalization
from stoker._src.ops.nn.moments import batch_normalization as batch_normalization
from stoker._src.ops.nn.moments import l2_normalize as l2_normalize
from stoker._src.ops.nn.moments import moments as moments
from stoker._src.ops.nn.moments import normalize_moments as normalize_moments
from stoker._src.ops.nn.moments import sufficient_statistics as sufficient_statistics
from stoker._src.ops.nn.moments import weighted_moments as weighted_moments
from stoker._src.ops.nn.pool_api import avg_pool as avg_pool
from stoker._src.ops.nn.pool_api import avg_pool as avg_pool2d
from stoker._src.ops.nn.pool_api import avg_pool1d as avg_pool1d
from stoker._src.ops.nn.pool_api import avg_pool3d as avg_pool3d
from stoker._src.ops.nn.pool_api import avg_pool_v2 as avg_pool_v2
from stoker._src.ops.nn.pool_api import max_pool as max_pool
from stoker._src.ops.nn.pool_api import max_pool1d as max_pool1d
from stoker._src.ops.nn.pool_api import max_pool2d as max_pool2d
from stoker._src.ops.nn.pool_api import max_pool3d as max_pool3d
from stoker._src.ops.nn.pool_api import max_pool_v2 as max_pool_v2
from stoker._src.ops.nn.pool_api import max_pool_with_argmax as max_pool_with_argmax
from stoker._src.ops.nn.pool_api import pool as pool
from stoker._src.ops.nn.softmax import log_softmax as log_softmax
from stoker._src.ops.nn.softmax import softmax as softmax
