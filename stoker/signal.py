"""Public names of tf.signal."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.signal.fourier import fft as fft
from stoker._src.ops.signal.fourier import fft2d as fft2d
from stoker._src.ops.signal.fourier import fft3d as fft3d
from stoker._src.ops.signal.fourier import ifft as ifft
from stoker._src.ops.signal.fourier import ifft2d as ifft2d
from stoker._src.ops.signal.fourier import ifft3d as ifft3d
from stoker._src.ops.signal.fourier import irfft as irfft
from stoker._src.ops.signal.fourier import irfft2d as irfft2d
from stoker._src.ops.signal.fourier import irfft3d as irfft3d
from stoker._src.ops.signal.fourier import rfft as rfft
from stoker._src.ops.signal.fourier import rfft2d as rfft2d
from stoker._src.ops.signal.fourier import rfft3d as rfft3d
from stoker._src.ops.signal.fourier_nd import fftnd as fftnd
from stoker._src.ops.signal.fourier_nd import ifftnd as ifftnd
from stoker._src.ops.signal.fourier_nd import irfftnd as irfftnd
from stoker._src.ops.signal.fourier_nd import rfftnd as rfftnd
from stoker._src.ops.signal.frames import dct as dct
from stoker._src.ops.signal.frames import fftshift as fftshift
from stoker._src.ops.signal.frames import frame as frame
from stoker._src.ops.signal.frames import idct as idct
from stoker._src.ops.signal.frames import ifftshift as ifftshift
from stoker._src.ops.signal.frames import inverse_mdct as inverse_mdct
from stoker._src.ops.signal.frames import inverse_stft as inverse_stft
from stoker._src.ops.signal.frames import inverse_stft_window_fn as inverse_stft_window_fn
from stoker._src.ops.signal.frames import mdct as mdct
from stoker._src.ops.signal.frames import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from stoker._src.ops.signal.frames import overlap_and_add as overlap_and_add
from stoker._src.ops.signal.frames import stft as stft
from stoker._src.ops.signal.windows import hamming_window as hamming_window
from stoker._src.ops.signal.windows import hann_window as hann_window
from stoker._src.ops.signal.windows import kaiser_bessel_derived_window as kaiser_bessel_derived_window
from stoker._src.ops.signal.windows import kaiser_window as kaiser_window
from stoker._src.ops.signal.windows import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from stoker._src.ops.signal.windows import vorbis_window as vorbis_window
