"""Public names of tf.contrib.slim.tfexample_decoder."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.decoding import BackupHandler as BackupHandler
from stoker._src.contrib.slim.decoding import BoundingBox as BoundingBox
from stoker._src.contrib.slim.decoding import DataDecoder as DataDecoder
from stoker._src.contrib.slim.decoding import Image as Image
from stoker._src.contrib.slim.decoding import ItemHandler as ItemHandler
from stoker._src.contrib.slim.decoding import ItemHandlerCallback as ItemHandlerCallback
from stoker._src.contrib.slim.decoding import LookupTensor as LookupTensor
from stoker._src.contrib.slim.decoding import SparseTensor as SparseTensor
from stoker._src.contrib.slim.decoding import Tensor as Tensor
from stoker._src.contrib.slim.decoding import TFExampleDecoder as TFExampleDecoder
