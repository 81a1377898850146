"""Public names of tf.io."""

from stoker.compat.v2.io import gfile as gfile
from stoker._src.formats.tfrecord import TFRecordOptions as TFRecordOptions
from stoker._src.formats.tfrecord import TFRecordWriter as TFRecordWriter
