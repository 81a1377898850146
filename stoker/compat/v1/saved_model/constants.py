"""Public names of tf.saved_model.constants."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.constants import ASSETS_DIRECTORY as ASSETS_DIRECTORY
from stoker._src.saved_model.constants import ASSETS_KEY as ASSETS_KEY
from stoker._src.saved_model.constants import DEBUG_DIRECTORY as DEBUG_DIRECTORY
from stoker._src.saved_model.constants import DEBUG_INFO_FILENAME_PB as DEBUG_INFO_FILENAME_PB
from stoker._src.saved_model.constants import LEGACY_INIT_OP_KEY as LEGACY_INIT_OP_KEY
from stoker._src.saved_model.constants import MAIN_OP_KEY as MAIN_OP_KEY
from stoker._src.saved_model.constants import SAVED_MODEL_FILENAME_PB as SAVED_MODEL_FILENAME_PB
from stoker._src.saved_model.constants import SAVED_MODEL_FILENAME_PBTXT as SAVED_MODEL_FILENAME_PBTXT
from stoker._src.saved_model.constants import SAVED_MODEL_SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION
from stoker._src.saved_model.constants import VARIABLES_DIRECTORY as VARIABLES_DIRECTORY
from stoker._src.saved_model.constants import VARIABLES_FILENAME as VARIABLES_FILENAME
