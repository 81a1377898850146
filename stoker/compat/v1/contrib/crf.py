"""Public names of tf.contrib.crf."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.crf import crf_binary_score as crf_binary_score
from stoker._src.contrib.crf import crf_decode as crf_decode
from stoker._src.contrib.crf import crf_log_likelihood as crf_log_likelihood
from stoker._src.contrib.crf import crf_log_norm as crf_log_norm
from stoker._src.contrib.crf import crf_multitag_sequence_score as crf_multitag_sequence_score
from stoker._src.contrib.crf import crf_sequence_score as crf_sequence_score
from stoker._src.contrib.crf import crf_unary_score as crf_unary_score
from stoker._src.contrib.crf import CrfDecodeBackwardRnnCell as CrfDecodeBackwardRnnCell
from stoker._src.contrib.crf import CrfDecodeForwardRnnCell as CrfDecodeForwardRnnCell
from stoker._src.contrib.crf import CrfForwardRnnCell as CrfForwardRnnCell
from stoker._src.contrib.crf import viterbi_decode as viterbi_decode
