"""Public names of tf.python_io."""

from stoker._src.formats.tfrecord import tf_record_iterator as tf_record_iterator
from stoker._src.formats.tfrecord import TFRecordCompressionType as TFRecordCompressionType
from stoker._src.formats.tfrecord import TFRecordOptions as TFRecordOptions
from stoker._src.formats.tfrecord import TFRecordWriter as TFRecordWriter
