"""Public names of tf.layers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.layers.base import InputSpec as InputSpec
from stoker._src.layers.base import Layer as Layer
from stoker._src.layers.convolutional import Conv1D as Conv1D
from stoker._src.layers.convolutional import conv1d as conv1d
from stoker._src.layers.convolutional import Conv2D as Conv2D
from stoker._src.layers.convolutional import conv2d as conv2d
from stoker._src.layers.convolutional import conv2d_transpose as conv2d_transpose
from stoker._src.layers.convolutional import Conv2DTranspose as Conv2DTranspose
from stoker._src.layers.convolutional import Conv3D as Conv3D
from stoker._src.layers.convolutional import conv3d as conv3d
from stoker._src.layers.convolutional import conv3d_transpose as conv3d_transpose
from stoker._src.layers.convolutional import Conv3DTranspose as Conv3DTranspose
from stoker._src.layers.convolutional import separable_conv1d as separable_conv1d
from stoker._src.layers.convolutional import separable_conv2d as separable_conv2d
from stoker._src.layers.convolutional import SeparableConv1D as SeparableConv1D
from stoker._src.layers.convolutional import SeparableConv2D as SeparableConv2D
from stoker._src.layers.core import Dense as Dense
from stoker._src.layers.core import dense as dense
from stoker._src.layers.core import Dropout as Dropout
from stoker._src.layers.core import dropout as dropout
from stoker._src.layers.core import Flatten as Flatten
from stoker._src.layers.core import flatten as flatten
from stoker._src.layers.normalization import batch_normalization as batch_normalization
from stoker._src.layers.normalization import BatchNormalization as BatchNormalization
from stoker._src.layers.pooling import average_pooling1d as average_pooling1d
from stoker._src.layers.pooling import average_pooling2d as average_pooling2d
from stoker._src.layers.pooling import average_pooling3d as average_pooling3d
from stoker._src.layers.pooling import AveragePooling1D as AveragePooling1D
from stoker._src.layers.pooling import AveragePooling2D as AveragePooling2D
from stoker._src.layers.pooling import AveragePooling3D as AveragePooling3D
from stoker._src.layers.pooling import max_pooling1d as max_pooling1d
from stoker._src.layers.pooling import max_pooling2d as max_pooling2d
from stoker._src.layers.pooling import max_pooling3d as max_pooling3d
from stoker._src.layers.pooling import MaxPooling1D as MaxPooling1D
from stoker._src.layers.pooling import MaxPooling2D as MaxPooling2D
from stoker._src.layers.pooling import MaxPooling3D as MaxPooling3D
