"""`tf.contrib.layers.optimize_loss`: a training step with clipping, noise, decay and summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant
from stoker._src.contrib.layers.common import both
from stoker._src.contrib.opt import clip_gradients_by_global_norm
from stoker._src.graph import conversion, indexed_slices, keys, public, scopes, tensor
from stoker._src.ops.array import casting, constants, selection, shaping
from stoker._src.ops.math import arithmetic, clipping, unary_functions
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.summary import summary_ops
from stoker._src.ops.variables import initializers, variable_functions, variable_scope
from stoker._src.train import training_util
from stoker._src.train.optimizers import adagrad, adam, descent, ftrl, moving_averages, rmsprop
from stoker._src.train.optimizers import optimizer as optimizers_optimizer

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    "Adagrad": adagrad.AdagradOptimizer,
    "Adam": adam.AdamOptimizer,
    "Ftrl": ftrl.FtrlOptimizer,
    "Momentum": lambda learning_rate: descent.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": rmsprop.RMSPropOptimizer,
    "SGD": descent.GradientDescentOptimizer,
}
OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]
for _name in ("OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES"):
    export_constant(__name__, _name, v1=both(_name))


@export(v1=both("optimize_loss"))
def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: dict[Any, float] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Any = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Any = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:
    """Returns the loss, whose value is computed after a step of the optimizer.

    Args:
        loss: a scalar.
        global_step: a variable that counts the steps; None for none.
        learning_rate: a number, a scalar tensor, or None if the optimizer has its own.
        optimizer: a name in `OPTIMIZER_CLS_NAMES`, a class, an optimizer, or a function of the learning rate.
        gradient_noise_scale: the standard deviation of noise added to gradients, before the learning rate (Neelakantan et al., 2015).
        gradient_multipliers: factors by variable or by the name of a variable ("net/weights:0").
        clip_gradients: the largest global norm of the gradients, or a function of pairs of gradients and variables.
        learning_rate_decay_fn: a function from the learning rate and the step to the learning rate.
        update_ops: what runs before the loss; by default UPDATE_OPS.
        variables: what is trained; by default TRAINABLE_VARIABLES.
        name: the variable scope ("OptimizeLoss").
        summaries: some of `OPTIMIZER_SUMMARIES`; by default the loss, the learning rate and the global norm.
        colocate_gradients_with_ops: whether gradients are computed where their ops are.
        increment_global_step: whether the step is counted.

    Raises:
        ValueError: an argument is of the wrong kind, or there are no gradients.
    """
    loss = conversion.convert_to_tensor(loss)
    if global_step is None:
        global_step = training_util.get_global_step()
    else:
        training_util.assert_global_step(global_step)
    with variable_scope.variable_scope(name, "OptimizeLoss", [loss, global_step]):
        updates = set(public.get_collection(keys.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
        if updates:
            with scopes.control_dependencies(list(updates)):
                loss = shaping.identity(loss)
        chosen = ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else list(summaries)
        for each in chosen:
            if each not in OPTIMIZER_SUMMARIES:
                raise ValueError(f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {each}.")
        rate = _learning_rate(learning_rate, learning_rate_decay_fn, global_step, chosen)
        made = _optimizer(optimizer, rate)
        trained = variable_functions.trainable_variables() if variables is None else variables
        gradients: Any = made.compute_gradients(loss, trained, colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_noise_scale is not None:
            gradients = _with_noise(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
        if "global_gradient_norm" in chosen or "gradient_norm" in chosen:
            summary_ops.scalar_summary(
                "global_norm/gradient_norm", clipping.global_norm([each for each, _ in gradients])
            )
        if isinstance(clip_gradients, (int, float)):
            gradients = clip_gradients_by_global_norm(gradients, clip_gradients)
        elif callable(clip_gradients):
            gradients = clip_gradients(gradients)
        elif clip_gradients is not None:
            raise ValueError(f"Unknown type {type(clip_gradients)} for clip_gradients")
        if "loss" in chosen:
            summary_ops.scalar_summary("loss", loss)
        for gradient, variable in gradients:
            values = gradient.values if isinstance(gradient, indexed_slices.IndexedSlices) else gradient
            if values is not None:
                plain = variable.name.replace(":", "_")
                if "gradients" in chosen:
                    summary_ops.histogram_summary(f"gradients/{plain}", values)
                if "gradient_norm" in chosen:
                    summary_ops.scalar_summary(f"gradient_norm/{plain}", clipping.global_norm([values]))
        if clip_gradients is not None and ("global_gradient_norm" in chosen or "gradient_norm" in chosen):
            summary_ops.scalar_summary(
                "global_norm/clipped_gradient_norm", clipping.global_norm([each for each, _ in gradients])
            )
        counted = global_step if increment_global_step else None
        step = made.apply_gradients(gradients, global_step=counted, name="train")
        with scopes.control_dependencies([step]):
            return shaping.identity(loss, name="control_dependency")


def _learning_rate(given: Any, decay: Any, global_step: Any, summaries: list[str]) -> Any:
    if given is None:
        return None
    if isinstance(given, tensor.Tensor) and given.get_shape().ndims == 0:
        rate = given
    elif isinstance(given, (int, float)):
        if given < 0.0:
            raise ValueError(f"Invalid learning_rate {given}.")
        rate = variable_scope.get_variable(
            "learning_rate", [], trainable=False, initializer=initializers.Constant(given)
        )
    else:
        raise ValueError(f"Learning rate should be 0d Tensor or float. Got {given} of type {type(given)}")
    if decay is not None:
        if global_step is None:
            raise ValueError("global_step is required for learning_rate_decay_fn.")
        rate = decay(rate, global_step)
        if "learning_rate" in summaries:
            summary_ops.scalar_summary("learning_rate", rate)
    return rate


def _optimizer(given: Any, rate: Any) -> Any:
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided {given}."
            )
        return OPTIMIZER_CLS_NAMES[given](learning_rate=rate)
    if isinstance(given, type) and issubclass(given, optimizers_optimizer.Optimizer):
        if rate is None:
            raise ValueError("Learning rate is None, but should be specified if optimizer is class.")
        return given(learning_rate=rate)  # type: ignore[call-arg]
    if isinstance(given, optimizers_optimizer.Optimizer):
        return given
    if callable(given):
        made = given() if rate is None else given(rate)
        if not isinstance(made, optimizers_optimizer.Optimizer):
            raise ValueError(f"Unrecognized optimizer: function should return subclass of Optimizer. Got {made}.")
        return made
    raise ValueError(
        "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of Optimizer or function "
        f"with one argument. Got {given}."
    )


def _with_noise(gradients: list[Any], scale: float) -> list[Any]:
    found = []
    for gradient, variable in gradients:
        if gradient is None:
            found.append((None, variable))
            continue
        shape = gradient.dense_shape if isinstance(gradient, indexed_slices.IndexedSlices) else gradient.get_shape()
        found.append((gradient + uniform_normal.truncated_normal(shape) * scale, variable))
    return found


def _multiplied(gradients: list[Any], factors: dict[Any, float]) -> list[Any]:
    found = []
    for gradient, variable in gradients:
        if gradient is not None and (variable in factors or variable.name in factors):
            key = variable if variable in factors else variable.name
            factor = constants.constant(factors[key], dtype=dtypes.float32)
            if isinstance(gradient, indexed_slices.IndexedSlices):
                gradient = indexed_slices.IndexedSlices(
                    gradient.values * factor, gradient.indices, gradient.dense_shape
                )
            else:
                gradient = gradient * casting.cast(factor, gradient.dtype)
        found.append((gradient, variable))
    return found


@export(v1=both("adaptive_clipping_fn"))
def adaptive_clipping_fn(
    std_factor: float = 2.0,
    decay: float = 0.95,
    static_max_norm: float | None = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: str | None = None,
) -> Callable[[list[Any]], list[Any]]:
    """Returns a function for `clip_gradients` that clips by the recent norms: by exp(mean + std_factor * deviation) of their logarithm.

    Args:
        std_factor: how many deviations above the mean a norm may be.
        decay: the fraction of the moving averages that each step keeps.
        static_max_norm: a bound that never is exceeded.
        global_step: the step. If given, the decay starts smaller: at most step / (step + 1).
        report_summary: whether to write summaries.
        epsilon: a small number in logarithms and roots.
        name: the variable scope ("AdaptiveMaxNorm").
    """

    def clip(gradients: list[Any]) -> list[Any]:
        values, variables = zip(*gradients)
        norm = clipping.global_norm(values)
        with variable_scope.variable_scope(name, "AdaptiveMaxNorm", [norm]):
            logarithm = unary_functions.log(norm + epsilon)

            def average(label: str, value: Any) -> Any:
                kept = decay
                if global_step is not None:
                    steps = casting.cast(global_step, dtypes.float32)
                    kept = arithmetic.minimum(decay, steps / (steps + 1.0))
                variable = variable_scope.get_variable(
                    label, shape=(), dtype=norm.dtype, initializer=initializers.Zeros(), trainable=False
                )
                return moving_averages.assign_moving_average(variable, value, kept, zero_debias=False)

            mean = average("mean", logarithm)
            deviation = unary_functions.sqrt(
                arithmetic.maximum(
                    epsilon, average("sq_mean", unary_functions.square(logarithm)) - unary_functions.square(mean)
                )
            )
            bound = unary_functions.exp(mean + std_factor * deviation)
            if static_max_norm is not None:
                bound = arithmetic.minimum(bound, static_max_norm)
            factor = selection.where(norm < bound, shaping.ones_like(norm), bound / norm)
            if report_summary:
                summary_ops.scalar_summary("global_norm/adaptive_max_gradient_norm", bound)
        clipped = [
            indexed_slices.IndexedSlices(each.values * factor, each.indices, each.dense_shape)
            if isinstance(each, indexed_slices.IndexedSlices)
            else None
            if each is None
            else each * factor
            for each in values
        ]
        return list(zip(clipped, variables))

    return clip
