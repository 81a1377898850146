"""Public names of tf.strings."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.ragged.ragged_strings import bytes_split as bytes_split
from stoker._src.ops.ragged.ragged_strings import ngrams as ngrams
from stoker._src.ops.ragged.ragged_strings import split_v2 as split
from stoker._src.ops.ragged.ragged_strings import unicode_decode as unicode_decode
from stoker._src.ops.ragged.ragged_strings import unicode_decode_with_offsets as unicode_decode_with_offsets
from stoker._src.ops.ragged.ragged_strings import unicode_encode as unicode_encode
from stoker._src.ops.ragged.ragged_strings import unicode_split as unicode_split
from stoker._src.ops.ragged.ragged_strings import unicode_split_with_offsets as unicode_split_with_offsets
from stoker._src.ops.strings.numbers import as_string as as_string
from stoker._src.ops.strings.numbers import string_format as format
from stoker._src.ops.strings.numbers import string_to_number_v2 as to_number
from stoker._src.ops.strings.string_ops import reduce_join_v2 as reduce_join
from stoker._src.ops.strings.string_ops import regex_full_match as regex_full_match
from stoker._src.ops.strings.string_ops import regex_replace as regex_replace
from stoker._src.ops.strings.string_ops import string_join as join
from stoker._src.ops.strings.string_ops import string_length_v2 as length
from stoker._src.ops.strings.string_ops import string_lower as lower
from stoker._src.ops.strings.string_ops import string_strip as strip
from stoker._src.ops.strings.string_ops import string_to_hash_bucket_fast as to_hash_bucket_fast
from stoker._src.ops.strings.string_ops import string_to_hash_bucket_strong as to_hash_bucket_strong
from stoker._src.ops.strings.string_ops import string_to_hash_bucket_v2 as to_hash_bucket
from stoker._src.ops.strings.string_ops import string_upper as upper
from stoker._src.ops.strings.string_ops import substr_v2 as substr
from stoker._src.ops.strings.string_ops import unsorted_segment_join as unsorted_segment_join
from stoker._src.ops.strings.unicode import unicode_script as unicode_script
from stoker._src.ops.strings.unicode import unicode_transcode as unicode_transcode
