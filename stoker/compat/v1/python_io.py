"""Public names of tf.python_io."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.formats.tfrecord import tf_record_iterator as tf_record_iterator
from stoker._src.formats.tfrecord import TFRecordCompressionType as TFRecordCompressionType
from stoker._src.formats.tfrecord import TFRecordOptions as TFRecordOptions
from stoker._src.formats.tfrecord import TFRecordWriter as TFRecordWriter
