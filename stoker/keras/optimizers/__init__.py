"""Public names of tf.keras.optimizers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.keras.optimizers import schedules as schedules
from stoker._src.keras.optimizer_rules import Adadelta as Adadelta
from stoker._src.keras.optimizer_rules import Adagrad as Adagrad
from stoker._src.keras.optimizer_rules import Adam as Adam
from stoker._src.keras.optimizer_rules import Adamax as Adamax
from stoker._src.keras.optimizer_rules import Ftrl as Ftrl
from stoker._src.keras.optimizer_rules import Nadam as Nadam
from stoker._src.keras.optimizer_rules import RMSprop as RMSprop
from stoker._src.keras.optimizer_rules import SGD as SGD
from stoker._src.keras.optimizers import deserialize as deserialize
from stoker._src.keras.optimizers import get as get
from stoker._src.keras.optimizers import Optimizer as Optimizer
from stoker._src.keras.optimizers import serialize as serialize
