"""Mixed precision training: an optimizer with loss scaling, and the switch for the graph rewrite."""

from __future__ import annotations

from typing import Any

from stoker._src.base import settings, tf_logging
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting
from stoker._src.ops.control_flow import branches_and_loops, grouping
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.optimizers import loss_scale as loss_scales
from stoker._src.train.optimizers.optimizer import Optimizer


@export(v1=("train.experimental.MixedPrecisionLossScaleOptimizer", "mixed_precision.MixedPrecisionLossScaleOptimizer"))
class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Wraps an optimizer: multiplies the loss by a scale, and divides the gradients by it.

    With a dynamic scale, gradients that are not finite are not applied.

    Args:
        opt: the optimizer that applies the updates.
        loss_scale: a number, "dynamic", or a LossScale.

    Raises:
        ValueError: `opt` is not an optimizer, or `loss_scale` is invalid.
    """

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._loss_scale = loss_scales.get(loss_scale)
        self._track_trackable(self._optimizer, "base_optimizer")
        self._track_trackable(self._loss_scale, "loss_scale")

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The (gradient, variable) pairs of the wrapped optimizer, computed from the scaled loss and divided by the scale.

        Args:
            As for `Optimizer.compute_gradients`.
        """
        pairs = self._optimizer.compute_gradients(
            self._scaled(loss), var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        inverse = 1.0 / self._loss_scale()
        return [(self._unscaled(gradient, inverse), variable) for gradient, variable in pairs]

    def _scaled(self, loss: Any) -> Any:
        if callable(loss) and not isinstance(loss, (Tensor, Variable)):
            return lambda: self._scaled(loss())
        return loss * casting.cast(self._loss_scale(), loss.dtype.base_dtype)

    @staticmethod
    def _unscaled(gradient: Any, inverse: Any) -> Any:
        if gradient is None:
            return None
        if isinstance(gradient, IndexedSlices):
            values = gradient.values * casting.cast(inverse, gradient.dtype.base_dtype)
            return IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return gradient * casting.cast(inverse, gradient.dtype.base_dtype)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients with the wrapped optimizer if the scale allows it, and updates the scale.

        Args:
            As for `Optimizer.apply_gradients`.
        """
        pairs = list(grads_and_vars)
        if isinstance(
            self._loss_scale, loss_scales.FixedLossScale
        ):  # a fixed scale needs no update, and every step is applied
            return self._optimizer.apply_gradients(pairs, global_step, name)
        updated, should_apply = self._loss_scale.update([gradient for gradient, _ in pairs])

        def apply() -> Any:
            return self._optimizer.apply_gradients(pairs, global_step, name)

        if should_apply is True:
            applied = apply()
        elif context.executing_eagerly():
            if should_apply:
                apply()
            return None
        else:
            # Slots are created outside of the branch, so that they can be found, but are named as in TensorFlow, which creates them inside:
            # Adam's powers are cond_1/beta1_power and cond_1/beta2_power in its checkpoints.
            with name_scope(None, "cond"):
                self._optimizer._create_slots([variable for gradient, variable in pairs if gradient is not None])
                applied = branches_and_loops.cond(should_apply, lambda: grouping.group(apply()), grouping.no_op)
        if context.executing_eagerly():
            return None
        return grouping.group(applied, updated, name=name or self._name)

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot of the wrapped optimizer."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The slot names of the wrapped optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """The variables of the wrapped optimizer."""
        return self._optimizer.variables()

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._optimizer._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._optimizer._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._optimizer._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._optimizer._resource_apply_sparse(grad, handle, indices)


@export(
    "train.experimental.enable_mixed_precision_graph_rewrite", v1="mixed_precision.enable_mixed_precision_graph_rewrite"
)
def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """Enables mixed precision in sessions, and wraps an optimizer with loss scaling.

    Sessions (and `tf.function`s) created afterwards run products, convolutions and the ops between them in float16 on a GPU
    and in bfloat16 on a CPU. Sums, exponentials, statistics, variables and their updates stay in float32. Fetched
    values have the declared dtype of their tensors. A session logs at INFO how many ops it converted, and
    RunOptions(output_partition_graphs=True) shows which. Gradients must be computed by the returned optimizer, not
    by `tf.gradients` or a tape, because the optimizer removes the scale.

    Args:
        opt: an optimizer.
        loss_scale: a number, "dynamic", or a LossScale.

    Raises:
        ValueError: `opt` is not an optimizer or already scales the loss, or `loss_scale` is invalid.
    """
    if settings.sessions_without_rewrite:
        tf_logging.warning(
            "You already have existing Sessions that do not use mixed precision. "
            "enable_mixed_precision_graph_rewrite() will not affect these Sessions."
        )
    if not isinstance(opt, Optimizer):
        raise ValueError(
            '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but got: ' + str(opt)
        )
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError(
            '"opt" must not already be an instance of a MixedPrecisionLossScaleOptimizer. '
            "`enable_mixed_precision_graph_rewrite` will automatically wrap the optimizer with a "
            "MixedPrecisionLossScaleOptimizer."
        )
    wrapped = MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    settings.mixed_precision_rewrite = True
    return wrapped


@export(
    "train.experimental.disable_mixed_precision_graph_rewrite",
    v1="mixed_precision.disable_mixed_precision_graph_rewrite",
)
def disable_mixed_precision_graph_rewrite() -> None:
    """Disables mixed precision in sessions created afterwards. Wrapped optimizers continue to scale the loss."""
    if not settings.mixed_precision_rewrite:
        tf_logging.warning("disable_mixed_precision_graph_rewrite() called when mixed precision is already disabled.")
    settings.mixed_precision_rewrite = False
