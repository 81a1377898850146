"""Public names of tf.io."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.io import gfile as gfile
from stoker._src.formats.tfrecord import TFRecordOptions as TFRecordOptions
from stoker._src.formats.tfrecord import TFRecordWriter as TFRecordWriter
from stoker._src.ops.image.codecs import decode_and_crop_jpeg as decode_and_crop_jpeg
from stoker._src.ops.image.codecs import decode_bmp as decode_bmp
from stoker._src.ops.image.codecs import decode_gif as decode_gif
from stoker._src.ops.image.codecs import decode_image as decode_image
from stoker._src.ops.image.codecs import decode_jpeg as decode_jpeg
from stoker._src.ops.image.codecs import decode_png as decode_png
from stoker._src.ops.image.codecs import encode_jpeg as encode_jpeg
from stoker._src.ops.image.codecs import encode_png as encode_png
from stoker._src.ops.image.codecs import extract_jpeg_shape as extract_jpeg_shape
from stoker._src.ops.image.codecs import is_jpeg as is_jpeg
from stoker._src.ops.io.decoding import decode_base64 as decode_base64
from stoker._src.ops.io.decoding import decode_compressed as decode_compressed
from stoker._src.ops.io.decoding import decode_csv as decode_csv
from stoker._src.ops.io.decoding import decode_json_example as decode_json_example
from stoker._src.ops.io.decoding import decode_raw as decode_raw
from stoker._src.ops.io.decoding import encode_base64 as encode_base64
from stoker._src.ops.io.files import match_filenames_once as match_filenames_once
from stoker._src.ops.io.files import matching_files as matching_files
from stoker._src.ops.io.files import read_file as read_file
from stoker._src.ops.io.files import write_file as write_file
from stoker._src.ops.io.files import write_graph as write_graph
from stoker._src.ops.io.proto_messages import decode_proto as decode_proto
from stoker._src.ops.io.proto_messages import encode_proto as encode_proto
from stoker._src.ops.io.tensor_messages import parse_tensor as parse_tensor
from stoker._src.ops.io.tensor_messages import serialize_tensor as serialize_tensor
from stoker._src.ops.ragged.feature_specs import FixedLenFeature as FixedLenFeature
from stoker._src.ops.ragged.feature_specs import FixedLenSequenceFeature as FixedLenSequenceFeature
from stoker._src.ops.ragged.feature_specs import parse_example as parse_example
from stoker._src.ops.ragged.feature_specs import parse_sequence_example as parse_sequence_example
from stoker._src.ops.ragged.feature_specs import parse_single_example as parse_single_example
from stoker._src.ops.ragged.feature_specs import parse_single_sequence_example as parse_single_sequence_example
from stoker._src.ops.ragged.feature_specs import RaggedFeature as RaggedFeature
from stoker._src.ops.ragged.feature_specs import SparseFeature as SparseFeature
from stoker._src.ops.ragged.feature_specs import VarLenFeature as VarLenFeature
from stoker._src.ops.sparse.sparse_messages import deserialize_many_sparse as deserialize_many_sparse
from stoker._src.ops.sparse.sparse_messages import serialize_many_sparse as serialize_many_sparse
from stoker._src.ops.sparse.sparse_messages import serialize_sparse as serialize_sparse
