"""Public names of tf.estimator.export."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.export_outputs import ClassificationOutput as ClassificationOutput
from stoker._src.estimator.export_outputs import ExportOutput as ExportOutput
from stoker._src.estimator.export_outputs import PredictOutput as PredictOutput
from stoker._src.estimator.export_outputs import RegressionOutput as RegressionOutput
from stoker._src.estimator.receivers import build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn
from stoker._src.estimator.receivers import build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn
from stoker._src.estimator.receivers import ServingInputReceiver as ServingInputReceiver
from stoker._src.estimator.receivers import TensorServingInputReceiver as TensorServingInputReceiver
