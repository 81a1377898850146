"""Public names of tf.keras.callbacks."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.callbacks import BaseLogger as BaseLogger
from stoker._src.keras.callbacks import Callback as Callback
from stoker._src.keras.callbacks import CSVLogger as CSVLogger
from stoker._src.keras.callbacks import EarlyStopping as EarlyStopping
from stoker._src.keras.callbacks import History as History
from stoker._src.keras.callbacks import LambdaCallback as LambdaCallback
from stoker._src.keras.callbacks import LearningRateScheduler as LearningRateScheduler
from stoker._src.keras.callbacks import ModelCheckpoint as ModelCheckpoint
from stoker._src.keras.callbacks import ProgbarLogger as ProgbarLogger
from stoker._src.keras.callbacks import ReduceLROnPlateau as ReduceLROnPlateau
from stoker._src.keras.callbacks import RemoteMonitor as RemoteMonitor
from stoker._src.keras.callbacks import TensorBoard as TensorBoard
from stoker._src.keras.callbacks import TerminateOnNaN as TerminateOnNaN
