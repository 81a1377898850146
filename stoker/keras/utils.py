"""Public names of tf.keras.utils."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.callbacks import Progbar as Progbar
from stoker._src.keras.data import Sequence as Sequence
from stoker._src.keras.preprocessing.image import array_to_img as array_to_img
from stoker._src.keras.preprocessing.image import img_to_array as img_to_array
from stoker._src.keras.preprocessing.image import load_img as load_img
from stoker._src.keras.preprocessing.image import save_img as save_img
from stoker._src.keras.preprocessing.sequence import pad_sequences as pad_sequences
from stoker._src.keras.serialization import custom_object_scope as custom_object_scope
from stoker._src.keras.serialization import CustomObjectScope as CustomObjectScope
from stoker._src.keras.serialization import deserialize_keras_object as deserialize_keras_object
from stoker._src.keras.serialization import get_custom_objects as get_custom_objects
from stoker._src.keras.serialization import serialize as serialize_keras_object
from stoker._src.keras.utils import GeneratorEnqueuer as GeneratorEnqueuer
from stoker._src.keras.utils import get_file as get_file
from stoker._src.keras.utils import normalize as normalize
from stoker._src.keras.utils import OrderedEnqueuer as OrderedEnqueuer
from stoker._src.keras.utils import SequenceEnqueuer as SequenceEnqueuer
from stoker._src.keras.utils import to_categorical as to_categorical
