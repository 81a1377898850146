"""Public names of tf.keras.constraints."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.constraints import Constraint as Constraint
from stoker._src.keras.constraints import deserialize as deserialize
from stoker._src.keras.constraints import get as get
from stoker._src.keras.constraints import MaxNorm as MaxNorm
from stoker._src.keras.constraints import MaxNorm as max_norm
from stoker._src.keras.constraints import MinMaxNorm as MinMaxNorm
from stoker._src.keras.constraints import MinMaxNorm as min_max_norm
from stoker._src.keras.constraints import NonNeg as NonNeg
from stoker._src.keras.constraints import NonNeg as non_neg
from stoker._src.keras.constraints import serialize as serialize
from stoker._src.keras.constraints import UnitNorm as UnitNorm
from stoker._src.keras.constraints import UnitNorm as unit_norm
