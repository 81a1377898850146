"""Public names of tf.keras.optimizers.schedules."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.schedules import deserialize as deserialize
from stoker._src.keras.schedules import ExponentialDecay as ExponentialDecay
from stoker._src.keras.schedules import InverseTimeDecay as InverseTimeDecay
from stoker._src.keras.schedules import LearningRateSchedule as LearningRateSchedule
from stoker._src.keras.schedules import PiecewiseConstantDecay as PiecewiseConstantDecay
from stoker._src.keras.schedules import PolynomialDecay as PolynomialDecay
from stoker._src.keras.schedules import serialize as serialize
