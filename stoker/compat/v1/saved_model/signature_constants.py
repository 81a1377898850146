"""Public names of tf.saved_model.signature_constants."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.constants import CLASSIFY_INPUTS as CLASSIFY_INPUTS
from stoker._src.saved_model.constants import CLASSIFY_METHOD_NAME as CLASSIFY_METHOD_NAME
from stoker._src.saved_model.constants import CLASSIFY_OUTPUT_CLASSES as CLASSIFY_OUTPUT_CLASSES
from stoker._src.saved_model.constants import CLASSIFY_OUTPUT_SCORES as CLASSIFY_OUTPUT_SCORES
from stoker._src.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY
from stoker._src.saved_model.constants import PREDICT_INPUTS as PREDICT_INPUTS
from stoker._src.saved_model.constants import PREDICT_METHOD_NAME as PREDICT_METHOD_NAME
from stoker._src.saved_model.constants import PREDICT_OUTPUTS as PREDICT_OUTPUTS
from stoker._src.saved_model.constants import REGRESS_INPUTS as REGRESS_INPUTS
from stoker._src.saved_model.constants import REGRESS_METHOD_NAME as REGRESS_METHOD_NAME
from stoker._src.saved_model.constants import REGRESS_OUTPUTS as REGRESS_OUTPUTS
