"""The features that `tf.io.parse_example` must parse for columns, labels and weights."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.feature_column.base import FeatureColumn, _FeatureColumn
from stoker._src.feature_column.numeric import NumericColumn, numeric_column
from stoker._src.feature_column.protocol import spec_of
from stoker._src.ops.ragged.feature_specs import FixedLenFeature


def _merged(columns: Any, kinds: tuple[type, ...], called: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(f"All feature_columns must be {called} instances. Given: {column}")
        for key, feature in spec_of(column).items():
            if key in spec and feature != spec[key]:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. Given {feature} and {spec[key]}"
                )
            spec[key] = feature
    return spec


@export(v1="feature_column.make_parse_example_spec")
def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """Returns the features of columns for `tf.io.parse_example`.

    Raises:
        ValueError: an element is not a column, or two columns need the same feature in different forms.
    """
    return _merged(feature_columns, (_FeatureColumn,), "_FeatureColumn")


@export(v2="feature_column.make_parse_example_spec")
def make_parse_example_spec_v2(feature_columns: Any) -> dict[str, Any]:
    """Returns the features of columns for `tf.io.parse_example`. The 1.x function also accepts 1.x columns."""
    return _merged(feature_columns, (FeatureColumn,), "FeatureColumn")


def _with_label(feature_columns: Any, label_key: Any, label: FixedLenFeature, weight_column: Any) -> dict[str, Any]:
    spec = _merged(feature_columns, (FeatureColumn, _FeatureColumn), "FeatureColumn")
    if label_key in spec:
        raise ValueError(f"label should not be used as feature. label_key: {label_key}, features: {spec.keys()}")
    spec[label_key] = label
    if weight_column is None:
        return spec
    if isinstance(weight_column, str):
        weight_column = numeric_column(weight_column)
    if not isinstance(weight_column, NumericColumn):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. "
            f"Given type: {type(weight_column)} value: {weight_column}"
        )
    if weight_column.key in spec:
        raise ValueError(
            f"weight_column should not be used as feature. weight_column: {weight_column.key}, features: {spec.keys()}"
        )
    return {**spec, **weight_column.parse_example_spec}


@export("estimator.classifier_parse_example_spec")
def classifier_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = dtypes.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the features of a classifier: those of its columns, a label with one value, and weights.

    Raises:
        ValueError: the label or the weight is also a feature, or the weight column is not numeric.
    """
    return _with_label(feature_columns, label_key, FixedLenFeature((1,), label_dtype, label_default), weight_column)


@export("estimator.regressor_parse_example_spec")
def regressor_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = dtypes.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Returns the features of a regressor: those of its columns, a label with `label_dimension` values, and weights.

    Raises:
        ValueError: the label or the weight is also a feature, or the weight column is not numeric.
    """
    label = FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with_label(feature_columns, label_key, label, weight_column)
