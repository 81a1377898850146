"""`tf.contrib.distribute`: the settings of distribution that `tf.estimator.RunConfig` takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker._src.base.export import export


@export(v1="contrib.distribute.DistributeConfig")
class DistributeConfig(NamedTuple):
    """Strategies of an Estimator, for `RunConfig(experimental_distribute=...)`."""

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None
