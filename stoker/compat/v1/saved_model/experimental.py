"""Public names of tf.saved_model.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.resources.trackable_resources import TrackableResource as TrackableResource
from stoker._src.saved_model.fingerprints import Fingerprint as Fingerprint
from stoker._src.saved_model.fingerprints import read_fingerprint as read_fingerprint
from stoker._src.saved_model.options import VariablePolicy as VariablePolicy
from stoker._src.saved_model.saving import save as save
