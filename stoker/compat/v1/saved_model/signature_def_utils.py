"""Public names of tf.saved_model.signature_def_utils."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.signatures import build_signature_def as build_signature_def
from stoker._src.saved_model.signatures import classification_signature_def as classification_signature_def
from stoker._src.saved_model.signatures import is_valid_signature as is_valid_signature
from stoker._src.saved_model.signatures import predict_signature_def as predict_signature_def
from stoker._src.saved_model.signatures import regression_signature_def as regression_signature_def
