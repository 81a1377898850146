"""Public names of tf.metrics."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.layers.metrics import accuracy as accuracy
from stoker._src.layers.metrics import false_negatives as false_negatives
from stoker._src.layers.metrics import false_positives as false_positives
from stoker._src.layers.metrics import mean as mean
from stoker._src.layers.metrics import mean_absolute_error as mean_absolute_error
from stoker._src.layers.metrics import mean_cosine_distance as mean_cosine_distance
from stoker._src.layers.metrics import mean_relative_error as mean_relative_error
from stoker._src.layers.metrics import mean_squared_error as mean_squared_error
from stoker._src.layers.metrics import mean_tensor as mean_tensor
from stoker._src.layers.metrics import percentage_below as percentage_below
from stoker._src.layers.metrics import precision as precision
from stoker._src.layers.metrics import recall as recall
from stoker._src.layers.metrics import root_mean_squared_error as root_mean_squared_error
from stoker._src.layers.metrics import true_negatives as true_negatives
from stoker._src.layers.metrics import true_positives as true_positives
from stoker._src.layers.metrics_classes import average_precision_at_k as average_precision_at_k
from stoker._src.layers.metrics_classes import average_precision_at_k as sparse_average_precision_at_k
from stoker._src.layers.metrics_classes import mean_iou as mean_iou
from stoker._src.layers.metrics_classes import mean_per_class_accuracy as mean_per_class_accuracy
from stoker._src.layers.metrics_classes import precision_at_k as precision_at_k
from stoker._src.layers.metrics_classes import precision_at_k as sparse_precision_at_k
from stoker._src.layers.metrics_classes import precision_at_top_k as precision_at_top_k
from stoker._src.layers.metrics_classes import recall_at_k as recall_at_k
from stoker._src.layers.metrics_classes import recall_at_top_k as recall_at_top_k
from stoker._src.layers.metrics_thresholds import auc as auc
from stoker._src.layers.metrics_thresholds import false_negatives_at_thresholds as false_negatives_at_thresholds
from stoker._src.layers.metrics_thresholds import false_positives_at_thresholds as false_positives_at_thresholds
from stoker._src.layers.metrics_thresholds import precision_at_thresholds as precision_at_thresholds
from stoker._src.layers.metrics_thresholds import recall_at_thresholds as recall_at_thresholds
from stoker._src.layers.metrics_thresholds import sensitivity_at_specificity as sensitivity_at_specificity
from stoker._src.layers.metrics_thresholds import specificity_at_sensitivity as specificity_at_sensitivity
from stoker._src.layers.metrics_thresholds import true_negatives_at_thresholds as true_negatives_at_thresholds
from stoker._src.layers.metrics_thresholds import true_positives_at_thresholds as true_positives_at_thresholds
