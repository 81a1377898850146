"""Public names of tf.contrib.slim.metrics."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.metrics import accuracy as accuracy
from stoker._src.contrib.metrics import aggregate_metric_map as aggregate_metric_map
from stoker._src.contrib.metrics import aggregate_metrics as aggregate_metrics
from stoker._src.contrib.metrics import count as count
from stoker._src.contrib.metrics import f1_score as f1_score
from stoker._src.contrib.metrics import streaming_accuracy as streaming_accuracy
from stoker._src.contrib.metrics import streaming_auc as streaming_auc
from stoker._src.contrib.metrics import streaming_covariance as streaming_covariance
from stoker._src.contrib.metrics import streaming_false_negatives as streaming_false_negatives
from stoker._src.contrib.metrics import streaming_false_negatives_at_thresholds as streaming_false_negatives_at_thresholds
from stoker._src.contrib.metrics import streaming_false_positives as streaming_false_positives
from stoker._src.contrib.metrics import streaming_false_positives_at_thresholds as streaming_false_positives_at_thresholds
from stoker._src.contrib.metrics import streaming_mean_absolute_error as streaming_mean_absolute_error
from stoker._src.contrib.metrics import streaming_mean_cosine_distance as streaming_mean_cosine_distance
from stoker._src.contrib.metrics import streaming_mean_iou as streaming_mean_iou
from stoker._src.contrib.metrics import streaming_mean_relative_error as streaming_mean_relative_error
from stoker._src.contrib.metrics import streaming_mean_squared_error as streaming_mean_squared_error
from stoker._src.contrib.metrics import streaming_pearson_correlation as streaming_pearson_correlation
from stoker._src.contrib.metrics import streaming_precision as streaming_precision
from stoker._src.contrib.metrics import streaming_precision_at_thresholds as streaming_precision_at_thresholds
from stoker._src.contrib.metrics import streaming_recall as streaming_recall
from stoker._src.contrib.metrics import streaming_recall_at_k as streaming_recall_at_k
from stoker._src.contrib.metrics import streaming_recall_at_thresholds as streaming_recall_at_thresholds
from stoker._src.contrib.metrics import streaming_root_mean_squared_error as streaming_root_mean_squared_error
from stoker._src.contrib.metrics import streaming_sensitivity_at_specificity as streaming_sensitivity_at_specificity
from stoker._src.contrib.metrics import streaming_sparse_average_precision_at_k as streaming_sparse_average_precision_at_k
from stoker._src.contrib.metrics import streaming_sparse_precision_at_k as streaming_sparse_precision_at_k
from stoker._src.contrib.metrics import streaming_sparse_recall_at_k as streaming_sparse_recall_at_k
from stoker._src.contrib.metrics import streaming_specificity_at_sensitivity as streaming_specificity_at_sensitivity
from stoker._src.contrib.metrics import streaming_true_negatives as streaming_true_negatives
from stoker._src.contrib.metrics import streaming_true_negatives_at_thresholds as streaming_true_negatives_at_thresholds
from stoker._src.contrib.metrics import streaming_true_positives as streaming_true_positives
from stoker._src.contrib.metrics import streaming_true_positives_at_thresholds as streaming_true_positives_at_thresholds
from stoker._src.layers.metrics import mean as streaming_mean
from stoker._src.layers.metrics import mean_tensor as streaming_mean_tensor
from stoker._src.layers.metrics import percentage_below as streaming_percentage_less
from stoker._src.ops.sparse.sets import set_difference as set_difference
from stoker._src.ops.sparse.sets import set_intersection as set_intersection
from stoker._src.ops.sparse.sets import set_size as set_size
from stoker._src.ops.sparse.sets import set_union as set_union
