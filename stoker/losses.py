"""Public names of tf.losses."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.losses import BinaryCrossentropy as BinaryCrossentropy
from stoker._src.keras.losses import CategoricalCrossentropy as CategoricalCrossentropy
from stoker._src.keras.losses import CategoricalHinge as CategoricalHinge
from stoker._src.keras.losses import CosineSimilarity as CosineSimilarity
from stoker._src.keras.losses import Hinge as Hinge
from stoker._src.keras.losses import Huber as Huber
from stoker._src.keras.losses import KLDivergence as KLDivergence
from stoker._src.keras.losses import LogCosh as LogCosh
from stoker._src.keras.losses import Loss as Loss
from stoker._src.keras.losses import MeanAbsoluteError as MeanAbsoluteError
from stoker._src.keras.losses import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from stoker._src.keras.losses import MeanSquaredError as MeanSquaredError
from stoker._src.keras.losses import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from stoker._src.keras.losses import Poisson as Poisson
from stoker._src.keras.losses import Reduction as Reduction
from stoker._src.keras.losses import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from stoker._src.keras.losses import SquaredHinge as SquaredHinge
