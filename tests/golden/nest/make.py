"""Writes what TensorFlow's `nest` answers to every case: python make.py OUTPUT.json, where TensorFlow is installed."""

import json
import sys

from cases import outcomes
from tensorflow.python.util import nest

with open(sys.argv[1], "w") as sink:
    json.dump(outcomes(nest), sink, indent=0)
    sink.write("\n")
