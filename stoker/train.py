"""Public names of tf.train."""

from stoker._src.train.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
