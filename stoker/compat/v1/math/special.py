"""Public names of tf.math.special."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.math.special import bessel_i0 as bessel_i0
from stoker._src.ops.math.special import bessel_i0e as bessel_i0e
from stoker._src.ops.math.special import bessel_i1 as bessel_i1
from stoker._src.ops.math.special import bessel_i1e as bessel_i1e
from stoker._src.ops.math.special import bessel_j0 as bessel_j0
from stoker._src.ops.math.special import bessel_j1 as bessel_j1
from stoker._src.ops.math.special import bessel_k0 as bessel_k0
from stoker._src.ops.math.special import bessel_k0e as bessel_k0e
from stoker._src.ops.math.special import bessel_k1 as bessel_k1
from stoker._src.ops.math.special import bessel_k1e as bessel_k1e
from stoker._src.ops.math.special import bessel_y0 as bessel_y0
from stoker._src.ops.math.special import bessel_y1 as bessel_y1
from stoker._src.ops.math.special import dawsn as dawsn
from stoker._src.ops.math.special import expint as expint
from stoker._src.ops.math.special import fresnel_cos as fresnel_cos
from stoker._src.ops.math.special import fresnel_sin as fresnel_sin
from stoker._src.ops.math.special import spence as spence
