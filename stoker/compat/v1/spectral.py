"""Public names of tf.spectral."""

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
from stoker._src.ops.signal.frames import dct as dct
from stoker._src.ops.signal.frames import idct as idct
