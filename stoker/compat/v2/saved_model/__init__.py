"""Public names of tf.saved_model."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.saved_model import experimental as experimental
from stoker._src.ops.resources.trackable_resources import Asset as Asset
from stoker._src.saved_model.constants import ASSETS_DIRECTORY as ASSETS_DIRECTORY
from stoker._src.saved_model.constants import ASSETS_KEY as ASSETS_KEY
from stoker._src.saved_model.constants import CLASSIFY_INPUTS as CLASSIFY_INPUTS
from stoker._src.saved_model.constants import CLASSIFY_METHOD_NAME as CLASSIFY_METHOD_NAME
from stoker._src.saved_model.constants import CLASSIFY_OUTPUT_CLASSES as CLASSIFY_OUTPUT_CLASSES
from stoker._src.saved_model.constants import CLASSIFY_OUTPUT_SCORES as CLASSIFY_OUTPUT_SCORES
from stoker._src.saved_model.constants import DEBUG_DIRECTORY as DEBUG_DIRECTORY
from stoker._src.saved_model.constants import DEBUG_INFO_FILENAME_PB as DEBUG_INFO_FILENAME_PB
from stoker._src.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY
from stoker._src.saved_model.constants import GPU as GPU
from stoker._src.saved_model.constants import PREDICT_INPUTS as PREDICT_INPUTS
from stoker._src.saved_model.constants import PREDICT_METHOD_NAME as PREDICT_METHOD_NAME
from stoker._src.saved_model.constants import PREDICT_OUTPUTS as PREDICT_OUTPUTS
from stoker._src.saved_model.constants import REGRESS_INPUTS as REGRESS_INPUTS
from stoker._src.saved_model.constants import REGRESS_METHOD_NAME as REGRESS_METHOD_NAME
from stoker._src.saved_model.constants import REGRESS_OUTPUTS as REGRESS_OUTPUTS
from stoker._src.saved_model.constants import SAVED_MODEL_FILENAME_PB as SAVED_MODEL_FILENAME_PB
from stoker._src.saved_model.constants import SAVED_MODEL_FILENAME_PBTXT as SAVED_MODEL_FILENAME_PBTXT
from stoker._src.saved_model.constants import SAVED_MODEL_SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION
from stoker._src.saved_model.constants import SERVING as SERVING
from stoker._src.saved_model.constants import TPU as TPU
from stoker._src.saved_model.constants import TRAINING as TRAINING
from stoker._src.saved_model.constants import VARIABLES_DIRECTORY as VARIABLES_DIRECTORY
from stoker._src.saved_model.constants import VARIABLES_FILENAME as VARIABLES_FILENAME
from stoker._src.saved_model.files import contains_saved_model as contains_saved_model
from stoker._src.saved_model.loaded import load as load
from stoker._src.saved_model.options import LoadOptions as LoadOptions
from stoker._src.saved_model.options import SaveOptions as SaveOptions
from stoker._src.saved_model.saving import save as save
