"""Public names of tf.contrib.signal."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.signal.frames import frame as frame
from stoker._src.ops.signal.frames import inverse_stft as inverse_stft
from stoker._src.ops.signal.frames import inverse_stft_window_fn as inverse_stft_window_fn
from stoker._src.ops.signal.frames import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from stoker._src.ops.signal.frames import overlap_and_add as overlap_and_add
from stoker._src.ops.signal.frames import stft as stft
from stoker._src.ops.signal.windows import hamming_window as hamming_window
from stoker._src.ops.signal.windows import hann_window as hann_window
from stoker._src.ops.signal.windows import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
