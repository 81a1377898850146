"""The update rules of all of TensorFlow's training ops. See `updates.py` for how a rule becomes ops.

Every rule works element by element on lists of tensors (`torch._foreach_*`). It updates the variables in place and does not
modify the gradients. In the formulas g is the gradient; the other names are those of TensorFlow's op inputs. Rules that compute a
small difference of large numbers multiply and add in two calls, because TensorFlow rounds in between. `addcmul` and `alpha=`
do not round there.
"""

# All of torch's multi-tensor functions for optimizers start with an underscore.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import math
from typing import Any

import torch

from stoker._src.base.extensions import extension
from stoker._src.ops.training.updates import RowLoop, Tensors, update

native = extension("stoker._src.ops.native.updates")

# With this step count beta^t is 0, so torch's fused Adam applies no bias correction.
_NO_CORRECTION = 1e30
_FUSED = (torch.float32, torch.float64)
_NARROW = (torch.float16, torch.bfloat16)


def _fusable(var: Tensors, grad: Tensors) -> bool:
    """Whether torch's fused optimizers can be used: they require contiguous real tensors of one dtype and device."""
    first = var[0]
    if first.dtype not in _FUSED:
        return False
    dtype, device = first.dtype, first.device
    return all(
        v.dtype is dtype and v.device == device and g.is_contiguous() and v.is_contiguous() for v, g in zip(var, grad)
    )


def _in_one_pass(var: Tensors, grad: Tensors) -> bool:
    """Whether the native loops support these variables: contiguous tensors of floats or doubles on the CPU."""
    return native is not None and var[0].device.type == "cpu" and _fusable(var, grad)


def _one_pass(rule: int, numbers: tuple[float, ...], *arrays: Tensors) -> None:
    """Applies a rule of native/updates.c to variables, their slots and gradients."""
    wide, threads = arrays[0][0].dtype is torch.float64, torch.get_num_threads()
    for each in zip(*arrays):
        native.whole(rule, each, each[0].numel(), wide, numbers, threads)


def _add_products(target: Tensors, left: Tensors, right: Tensors, factor: float = 1.0) -> None:
    """target += left * right * factor. 16-bit floats are rounded after every operation, as in TensorFlow."""
    if target[0].dtype in _NARROW:
        products = torch._foreach_mul(left, right)
        torch._foreach_add_(target, torch._foreach_mul(products, _rounded(factor, target)))
    else:
        torch._foreach_addcmul_(target, left, right, factor)


def _add_quotients(target: Tensors, above: Tensors, below: Tensors, factor: Any) -> None:
    """target += above * factor / below. 16-bit floats are rounded after every operation, as in TensorFlow."""
    if target[0].dtype in _NARROW or isinstance(factor, torch.Tensor):
        quotients = torch._foreach_mul(above, factor)
        torch._foreach_div_(quotients, below)
        torch._foreach_add_(target, quotients)
    else:
        torch._foreach_addcdiv_(target, above, below, factor)


def _add_scaled(target: Tensors, values: Tensors, factor: Any) -> None:
    """target += values * factor. The factor may be a tensor on the device."""
    if isinstance(factor, torch.Tensor):
        torch._foreach_add_(target, torch._foreach_mul(values, factor))
    else:
        torch._foreach_add_(target, values, alpha=factor)


def _rounded(number: Any, like: Tensors) -> Any:
    """Rounds `number` to the dtype of a variable, because TensorFlow computes with hyperparameters in that dtype."""
    if isinstance(number, torch.Tensor):
        return number.to(like[0].dtype)
    return torch.tensor(number, dtype=like[0].dtype).item()


# ---- descent and momentum ---------------------------------------------------------------------------------------


@update("GradientDescent(var; alpha, delta)", early_gradient=True, device_numbers=("alpha",))
def GRADIENT_DESCENT(var: Tensors, alpha: Any, delta: Tensors) -> None:
    """var -= alpha * delta"""
    _add_scaled(var, delta, -alpha)


@update("ProximalGradientDescent(var; alpha, l1, l2, delta)", complex_numbers=False, sparse=True)
def PROXIMAL_GRADIENT_DESCENT(var: Tensors, alpha: float, l1: float, l2: float, delta: Tensors) -> None:
    """p = var - alpha * g;  var = sign(p) * max(|p| - alpha * l1, 0) / (1 + alpha * l2)"""
    torch._foreach_sub_(var, torch._foreach_mul(delta, alpha))
    if l1 > 0:
        _shrink(var, alpha * l1)
    torch._foreach_div_(var, 1 + alpha * l2)


def _shrink(values: Tensors, amount: float) -> None:
    """values = sign(values) * max(|values| - amount, 0)"""
    sizes = torch._foreach_abs(values)
    torch._foreach_sub_(sizes, amount)
    torch._foreach_clamp_min_(sizes, 0)
    torch._foreach_sign_(values)
    torch._foreach_mul_(values, sizes)


def _momentum(
    var: Tensors, accum: Tensors, lr: Any, grad: Tensors, momentum: float, *, use_nesterov: bool, rows: bool = False
) -> None:
    # The fused form adds before it multiplies by the rate. With an infinite rate the results would differ.
    if momentum and _fusable(var, grad) and not isinstance(lr, torch.Tensor) and math.isfinite(lr):
        torch._fused_sgd_(
            var, grad, accum, weight_decay=0.0, momentum=momentum, lr=lr, dampening=0.0, nesterov=use_nesterov,
            maximize=False, is_first_step=False,
        )  # fmt: skip
        return
    torch._foreach_mul_(accum, momentum)
    torch._foreach_add_(accum, grad)
    if not use_nesterov:
        _add_scaled(var, accum, -lr)
        return
    if rows:
        steps = torch._foreach_mul(accum, _rounded(momentum * lr, var))
    else:
        steps = torch._foreach_mul(accum, momentum)
        torch._foreach_mul_(steps, lr)
    torch._foreach_add_(steps, torch._foreach_mul(grad, lr))
    torch._foreach_sub_(var, steps)


def _momentum_rows(
    var: Tensors, accum: Tensors, lr: float, grad: Tensors, momentum: float, *, use_nesterov: bool
) -> None:
    _momentum(var, accum, lr, grad, momentum, use_nesterov=use_nesterov, rows=True)


def _momentum_row_loop(lr: Any, grad: Tensors, momentum: float, *, use_nesterov: bool) -> RowLoop | None:
    return (native.MOMENTUM, (lr, momentum, use_nesterov)) if momentum and math.isfinite(lr) else None


@update(
    "Momentum(var, accum; lr, grad, momentum)",
    sparse=_momentum_rows,
    row_loop=_momentum_row_loop,
    device_numbers=("lr",),
    use_nesterov=False,
)
def MOMENTUM(var: Tensors, accum: Tensors, lr: float, grad: Tensors, momentum: float, *, use_nesterov: bool) -> None:
    """accum = momentum * accum + g;  var -= lr * accum, or with Nesterov momentum lr * (g + momentum * accum)"""
    _momentum(var, accum, lr, grad, momentum, use_nesterov=use_nesterov)


@update("KerasMomentum(var, accum; lr, grad, momentum)", sparse=True, reference=False, use_nesterov=False)
def KERAS_MOMENTUM(
    var: Tensors, accum: Tensors, lr: float, grad: Tensors, momentum: float, *, use_nesterov: bool
) -> None:
    """accum = momentum * accum - lr * g;  var += accum, or with Nesterov momentum momentum * accum - lr * g"""
    torch._foreach_mul_(accum, momentum)
    torch._foreach_add_(accum, grad, alpha=-lr)
    if use_nesterov:
        steps = torch._foreach_mul(accum, momentum)
        torch._foreach_sub_(steps, torch._foreach_mul(grad, lr))
        torch._foreach_add_(var, steps)
    else:
        torch._foreach_add_(var, accum)


# ---- Adagrad and its relatives ----------------------------------------------------------------------------------


def _adagrad(var: Tensors, accum: Tensors, lr: float, grad: Tensors, *, update_slots: bool, rows: bool = False) -> None:
    if update_slots and var[0].device.type == "cpu" and _fusable(var, grad):
        steps = [torch.ones(())] * len(var)  # the step only matters with learning rate decay
        torch._fused_adagrad_(var, grad, accum, steps, lr=lr, lr_decay=0.0, weight_decay=0.0, eps=0.0, maximize=False)
        return
    if update_slots:
        _add_products(accum, grad, grad)
    if var[0].dtype not in _NARROW or (
        rows and var[0].numel() == len(var[0])
    ):  # TensorFlow divides if a row has one element
        _add_quotients(var, grad, list(torch._foreach_sqrt(accum)), -lr)
    else:
        products = torch._foreach_mul(grad, lr)
        torch._foreach_mul_(products, _inverse_roots(accum, rows=rows))
        torch._foreach_sub_(var, products)


def _inverse_roots(values: Tensors, *, rows: bool) -> Tensors:
    """1 / sqrt(values) for 16-bit floats. For rows, the square root is rounded before the division."""
    if rows:
        return list(torch._foreach_reciprocal(torch._foreach_sqrt(values)))
    return [value.float().rsqrt_().to(value.dtype) for value in values]


def _adagrad_rows(var: Tensors, accum: Tensors, lr: float, grad: Tensors, *, update_slots: bool) -> None:
    _adagrad(var, accum, lr, grad, update_slots=update_slots, rows=True)


def _adagrad_row_loop(lr: Any, grad: Tensors, *, update_slots: bool) -> RowLoop | None:
    return (native.ADAGRAD, (lr,)) if update_slots else None


@update(
    "Adagrad(var, accum; lr, grad)",
    sparse=_adagrad_rows,
    row_loop=_adagrad_row_loop,
    device_numbers=("lr",),
    update_slots=True,
)
def ADAGRAD(var: Tensors, accum: Tensors, lr: float, grad: Tensors, *, update_slots: bool) -> None:
    """accum += g^2 (if update_slots);  var -= lr * g / sqrt(accum)"""
    _adagrad(var, accum, lr, grad, update_slots=update_slots)


@update("AdagradV2(var, accum; lr, epsilon, grad)", sparse=True, update_slots=True)
def ADAGRAD_V2(var: Tensors, accum: Tensors, lr: float, epsilon: float, grad: Tensors, *, update_slots: bool) -> None:
    """accum += g^2 (if update_slots);  var -= lr * g / (sqrt(accum) + epsilon)"""
    if update_slots:
        _add_products(accum, grad, grad)
    roots = torch._foreach_sqrt(accum)
    torch._foreach_add_(roots, epsilon)
    _add_quotients(var, grad, list(roots), -lr)


@update(
    "ProximalAdagrad(var, accum; lr, l1, l2, grad)",
    complex_numbers=False,
    sparse=True,
    checked_signs=("dense", "sparse"),
    early_gradient=True,
)
def PROXIMAL_ADAGRAD(var: Tensors, accum: Tensors, lr: float, l1: float, l2: float, grad: Tensors) -> None:
    """accum += g^2;  r = lr / sqrt(accum);  p = var - r * g;  var = sign(p) * max(|p| - r * l1, 0) / (1 + r * l2)"""
    torch._foreach_add_(accum, torch._foreach_mul(grad, grad))
    rates = torch._foreach_rsqrt(accum)
    torch._foreach_mul_(rates, lr)
    torch._foreach_sub_(var, torch._foreach_mul(grad, rates))
    if l1 > 0:
        sizes = torch._foreach_abs(var)
        torch._foreach_sub_(sizes, torch._foreach_mul(rates, l1))
        torch._foreach_clamp_min_(sizes, 0)
        torch._foreach_sign_(var)
        torch._foreach_mul_(var, sizes)
    torch._foreach_mul_(rates, l2)
    torch._foreach_add_(rates, 1)
    torch._foreach_div_(var, rates)


def _adagrad_da_rows(
    var: Tensors,
    gradient_accumulator: Tensors,
    gradient_squared_accumulator: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    global_step: int,
) -> None:
    """As ADAGRAD_DA, but numerator and denominator are divided by lr * t, so the result is not finite at t = 0."""
    torch._foreach_add_(gradient_accumulator, grad)
    torch._foreach_addcmul_(gradient_squared_accumulator, grad, grad)
    below = torch._foreach_sqrt(gradient_squared_accumulator)
    torch._foreach_div_(below, global_step * lr)
    torch._foreach_add_(below, l2)
    torch._foreach_copy_(var, gradient_accumulator)
    torch._foreach_div_(var, -global_step)
    if l1 > 0:
        _shrink(var, l1)
    torch._foreach_div_(var, below)


@update(
    "AdagradDA(var, gradient_accumulator, gradient_squared_accumulator; grad, lr, l1, l2, global_step)",
    complex_numbers=False,
    sparse=_adagrad_da_rows,
)
def ADAGRAD_DA(
    var: Tensors,
    gradient_accumulator: Tensors,
    gradient_squared_accumulator: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    global_step: int,
) -> None:
    """G += g;  H += g^2;  var = -lr * sign(G) * max(|G| - l1 * t, 0) / (l2 * t * lr + sqrt(H))"""
    torch._foreach_add_(gradient_accumulator, grad)
    torch._foreach_addcmul_(gradient_squared_accumulator, grad, grad)
    below = torch._foreach_sqrt(gradient_squared_accumulator)
    torch._foreach_add_(below, l2 * global_step * lr)
    torch._foreach_copy_(var, gradient_accumulator)
    if l1 > 0:
        _shrink(var, l1 * global_step)
    torch._foreach_mul_(var, -lr)
    torch._foreach_div_(var, below)


def _adadelta(
    var: Tensors,
    accum: Tensors,
    accum_update: Tensors,
    lr: float,
    rho: float,
    epsilon: float,
    grad: Tensors,
    rows: bool,
) -> None:
    if _in_one_pass(var, grad):
        _one_pass(native.ADADELTA, (lr, rho, epsilon), var, accum, accum_update, grad)
        return
    torch._foreach_mul_(accum, rho)
    _add_products(accum, grad, grad, 1 - rho)
    changes = torch._foreach_add(accum_update, epsilon)
    torch._foreach_sqrt_(changes)
    below = torch._foreach_add(accum, epsilon)
    if var[0].dtype in _NARROW:
        torch._foreach_mul_(changes, _inverse_roots(list(below), rows=rows))
    else:
        torch._foreach_sqrt_(below)
        torch._foreach_div_(changes, below)
    torch._foreach_mul_(changes, grad)
    torch._foreach_mul_(accum_update, rho)
    _add_products(accum_update, list(changes), list(changes), 1 - rho)
    torch._foreach_add_(var, changes, alpha=-lr)


def _adadelta_rows(
    var: Tensors, accum: Tensors, accum_update: Tensors, lr: float, rho: float, epsilon: float, grad: Tensors
) -> None:
    _adadelta(var, accum, accum_update, lr, rho, epsilon, grad, rows=True)


@update("Adadelta(var, accum, accum_update; lr, rho, epsilon, grad)", sparse=_adadelta_rows)
def ADADELTA(
    var: Tensors, accum: Tensors, accum_update: Tensors, lr: float, rho: float, epsilon: float, grad: Tensors
) -> None:
    """accum = rho * accum + (1 - rho) * g^2;  u = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * g;
    accum_update = rho * accum_update + (1 - rho) * u^2;  var -= lr * u"""
    _adadelta(var, accum, accum_update, lr, rho, epsilon, grad, rows=False)


# ---- RMSProp ----------------------------------------------------------------------------------------------------


def _mean_squares(ms: Tensors, rho: float, grad: Tensors) -> None:
    torch._foreach_mul_(ms, rho)
    _add_products(ms, grad, grad, 1 - rho)


def _mean_squares_by_difference(ms: Tensors, rho: float, grad: Tensors) -> None:
    """ms += (1 - rho) * (g^2 - ms): TensorFlow's formula for whole variables.

    If the old value has little weight, this form loses digits of small squares. Otherwise both forms are equally accurate.
    """
    if abs(rho) >= 0.5 and ms[0].dtype not in _NARROW:
        _mean_squares(ms, rho, grad)
    else:
        _move_towards(ms, torch._foreach_mul(grad, grad), _rounded(1 - rho, ms))


def _rms_step(var: Tensors, mom: Tensors, lr: float, momentum: float, grad: Tensors, roots: list[torch.Tensor]) -> None:
    torch._foreach_sqrt_(roots)
    torch._foreach_mul_(mom, momentum)
    _add_quotients(mom, grad, roots, lr)
    torch._foreach_sub_(var, mom)


def _rms_step_of_rows(
    var: Tensors, mom: Tensors, lr: float, momentum: float, grad: Tensors, roots: list[torch.Tensor]
) -> None:
    if var[0].dtype not in _NARROW:
        _rms_step(var, mom, lr, momentum, grad, roots)
        return
    steps = _inverse_roots(roots, rows=True)
    torch._foreach_mul_(steps, lr)
    torch._foreach_mul_(steps, grad)
    torch._foreach_mul_(mom, momentum)
    torch._foreach_add_(mom, steps)
    torch._foreach_sub_(var, mom)


def _rms_prop_rows(
    var: Tensors, ms: Tensors, mom: Tensors, lr: float, rho: float, momentum: float, epsilon: float, grad: Tensors
) -> None:
    _mean_squares(ms, rho, grad)
    _rms_step_of_rows(var, mom, lr, momentum, grad, list(torch._foreach_add(ms, epsilon)))


def _rms_prop_row_loop(lr: Any, rho: float, momentum: float, epsilon: float, grad: Tensors) -> RowLoop | None:
    return native.RMS_PROP, (lr, rho, momentum, epsilon)


@update(
    "RMSProp(var, ms, mom; lr, rho, momentum, epsilon, grad)",
    sparse=_rms_prop_rows,
    row_loop=_rms_prop_row_loop,
    device_numbers=("lr",),
)
def RMS_PROP(
    var: Tensors, ms: Tensors, mom: Tensors, lr: float, rho: float, momentum: float, epsilon: float, grad: Tensors
) -> None:
    """ms = rho * ms + (1 - rho) * g^2;  mom = momentum * mom + lr * g / sqrt(ms + epsilon);  var -= mom"""
    if _in_one_pass(var, grad) and rho >= 0.5:
        _one_pass(native.RMS_PROP, (lr, rho, momentum, epsilon), var, ms, mom, grad)
        return
    _mean_squares_by_difference(ms, rho, grad)
    _rms_step(var, mom, lr, momentum, grad, list(torch._foreach_add(ms, epsilon)))


def _centered_rms_prop_rows(
    var: Tensors,
    mg: Tensors,
    ms: Tensors,
    mom: Tensors,
    lr: float,
    rho: float,
    momentum: float,
    epsilon: float,
    grad: Tensors,
) -> None:
    _decay_towards(ms, rho, list(torch._foreach_mul(grad, grad)))
    _decay_towards(mg, rho, grad)
    roots = torch._foreach_add(ms, epsilon)
    torch._foreach_sub_(roots, torch._foreach_mul(mg, mg))
    _rms_step_of_rows(var, mom, lr, momentum, grad, list(roots))


@update("CenteredRMSProp(var, mg, ms, mom; lr, rho, momentum, epsilon, grad)", sparse=_centered_rms_prop_rows)
def CENTERED_RMS_PROP(
    var: Tensors,
    mg: Tensors,
    ms: Tensors,
    mom: Tensors,
    lr: float,
    rho: float,
    momentum: float,
    epsilon: float,
    grad: Tensors,
) -> None:
    """As RMSProp with mg = rho * mg + (1 - rho) * g, dividing by sqrt(ms - mg^2 + epsilon).

    The difference may lose most of its digits, so every operation is rounded where TensorFlow rounds it. For whole variables,
    the averages move by (1 - rho) times the difference. For rows, the averages are decayed and then added to. Epsilon is added
    before the square is subtracted.
    """
    if _in_one_pass(var, grad):
        _one_pass(native.CENTERED_RMS_PROP, (lr, _rounded(1 - rho, ms), momentum, epsilon), var, mg, ms, mom, grad)
        return
    for average, target in ((ms, torch._foreach_mul(grad, grad)), (mg, grad)):
        _move_towards(average, target, _rounded(1 - rho, ms))
    roots = torch._foreach_sub(ms, torch._foreach_mul(mg, mg))
    torch._foreach_add_(roots, epsilon)
    _rms_step(var, mom, lr, momentum, grad, list(roots))


def _decay_towards(average: Tensors, rho: float, target: Tensors) -> None:
    torch._foreach_mul_(average, rho)
    torch._foreach_add_(average, torch._foreach_mul(target, _rounded(1 - rho, average)))


# ---- Adam and its relatives -------------------------------------------------------------------------------------


def _move_towards(average: Tensors, target: Any, factor: float) -> None:
    """average += (target - average) * factor, rounded after each operation, as TensorFlow computes running means."""
    steps = torch._foreach_sub(target, average)
    torch._foreach_mul_(steps, factor)
    torch._foreach_add_(average, steps)


def _moments(m: Tensors, v: Tensors, beta1: float, beta2: float, grad: Tensors) -> None:
    _move_towards(m, grad, _rounded(1 - beta1, m))
    _move_towards(v, torch._foreach_mul(grad, grad), _rounded(1 - beta2, v))


def _corrected(lr: Any, beta1_power: Any, beta2_power: Any, like: Tensors) -> Any:
    """lr * sqrt(1 - beta2^t) / (1 - beta1^t), following IEEE arithmetic if a power is 1 or more."""
    if like[0].dtype in _FUSED:
        root = math.sqrt(1 - beta2_power) if beta2_power <= 1 else math.nan
        return lr * root * math.inf if beta1_power == 1 else lr * root / (1 - beta1_power)
    rate, power1, power2 = (torch.tensor(each, dtype=like[0].dtype) for each in (lr, beta1_power, beta2_power))
    return (rate * torch.sqrt(1 - power2) / (1 - power1)).item()


@update(
    "Adam(var, m, v; beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)",
    device_numbers=("beta1_power", "beta2_power", "lr"),
    use_nesterov=False,
)
def ADAM(
    var: Tensors,
    m: Tensors,
    v: Tensors,
    beta1_power: float,
    beta2_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensors,
    *,
    use_nesterov: bool,
) -> None:
    """m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
    var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)

    With Nesterov momentum, m is replaced by beta1 * m + (1 - beta1) * g in the last formula.
    """
    # For betas below one half, TensorFlow's formula for the averages loses digits and torch's does not.
    fused = not use_nesterov and _fusable(var, grad) and 0.5 < beta1 < 1 and 0.5 <= beta2 < 1
    if any(isinstance(each, torch.Tensor) for each in (lr, beta1_power, beta2_power)):
        rate: Any = lr * (1 - beta2_power) ** 0.5 / (1 - beta1_power)
        fused = fused and rate.dtype is torch.float32
    else:
        rate = _corrected(lr, beta1_power, beta2_power, var)
    if fused:
        # Without a bias correction, torch's formula is var -= rate * m / (sqrt(v) + epsilon).
        steps = [torch.full((), _NO_CORRECTION, device=var[0].device)] * len(var)
        torch._fused_adam_(
            var, grad, m, v, [], steps,
            lr=rate, beta1=beta1, beta2=beta2, weight_decay=0.0, eps=epsilon, amsgrad=False, maximize=False,
        )  # fmt: skip
        return
    if _in_one_pass(var, grad) and isinstance(rate, float):
        _one_pass(native.ADAM, (rate, beta1, 1 - beta1, 1 - beta2, epsilon, use_nesterov), var, m, v, grad)
        return
    _moments(m, v, beta1, beta2, grad)
    ahead: Any = m
    if use_nesterov:
        ahead = torch._foreach_mul(grad, _rounded(1 - beta1, m))
        torch._foreach_add_(ahead, torch._foreach_mul(m, beta1))
    _step_back(var, ahead, rate, v, epsilon)


def _step_back(var: Tensors, ahead: Tensors, rate: Any, squares: Tensors, epsilon: float) -> None:
    """var -= rate * ahead / (sqrt(squares) + epsilon)"""
    below = torch._foreach_sqrt(squares)
    torch._foreach_add_(below, epsilon)
    steps = torch._foreach_mul(ahead, rate)
    torch._foreach_div_(steps, below)
    torch._foreach_sub_(var, steps)


@update(
    "AdamWithAmsgrad(var, m, v, vhat; beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)",
    reference=False,
    complex_numbers=False,
)
def ADAM_WITH_AMSGRAD(
    var: Tensors,
    m: Tensors,
    v: Tensors,
    vhat: Tensors,
    beta1_power: float,
    beta2_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensors,
) -> None:
    """As Adam, dividing by sqrt(vhat) + epsilon with vhat = max(vhat, v)."""
    _moments(m, v, beta1, beta2, grad)
    _raise_to(vhat, v)
    _step_back(var, m, _corrected(lr, beta1_power, beta2_power, var), vhat, epsilon)


@update("AdaMax(var, m, v; beta1_power, lr, beta1, beta2, epsilon, grad)", complex_numbers=False)
def ADA_MAX(
    var: Tensors,
    m: Tensors,
    v: Tensors,
    beta1_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensors,
) -> None:
    """m = beta1 * m + (1 - beta1) * g;  v = max(beta2 * v, |g|);  var -= lr / (1 - beta1_power) * m / (v + epsilon)"""
    _move_towards(m, grad, _rounded(1 - beta1, m))
    torch._foreach_mul_(v, beta2)
    _raise_to(v, list(torch._foreach_abs(grad)))
    steps = torch._foreach_div(m, torch._foreach_add(v, epsilon))
    torch._foreach_mul_(steps, _corrected(lr, beta1_power, 0.0, var))
    torch._foreach_sub_(var, steps)


def _raise_to(values: Tensors, others: Tensors) -> None:
    """values = max(values, others). A NaN in `others` is ignored, as in TensorFlow."""
    for value, other in zip(values, others):
        torch.where(value < other, other, value, out=value)


# ---- sign updates -----------------------------------------------------------------------------------------------


def _agreement(m: Tensors, beta: float, grad: Tensors) -> Tensors:
    """m = beta * m + (1 - beta) * g; returns sign(g) * sign(m)."""
    torch._foreach_mul_(m, beta)
    torch._foreach_add_(m, grad, alpha=_rounded(1 - beta, m))
    signs = torch._foreach_sign(grad)
    for sign, mean in zip(signs, m):
        sign.mul_(torch.where(mean.isnan(), mean, mean.sign()))  # torch's sign of NaN is 0
    return list(signs)


@update("AddSign(var, m; lr, alpha, sign_decay, beta, grad)", complex_numbers=False)
def ADD_SIGN(var: Tensors, m: Tensors, lr: float, alpha: float, sign_decay: float, beta: float, grad: Tensors) -> None:
    """m = beta * m + (1 - beta) * g;  var -= lr * (alpha + sign_decay * sign(g) * sign(m)) * g"""
    factors = _agreement(m, beta, grad)
    torch._foreach_mul_(factors, sign_decay)
    torch._foreach_add_(factors, alpha)
    torch._foreach_mul_(factors, lr)
    torch._foreach_mul_(factors, grad)
    torch._foreach_sub_(var, factors)


@update("PowerSign(var, m; lr, logbase, sign_decay, beta, grad)", complex_numbers=False)
def POWER_SIGN(
    var: Tensors, m: Tensors, lr: float, logbase: float, sign_decay: float, beta: float, grad: Tensors
) -> None:
    """m = beta * m + (1 - beta) * g;  var -= lr * exp(logbase * sign_decay * sign(g) * sign(m)) * g"""
    factors = _agreement(m, beta, grad)
    torch._foreach_mul_(factors, logbase * sign_decay)
    torch._foreach_exp_(factors)
    torch._foreach_mul_(factors, lr)
    torch._foreach_mul_(factors, grad)
    torch._foreach_sub_(var, factors)


# ---- Ftrl -------------------------------------------------------------------------------------------------------


def _powers(values: Tensors, lr_power: float) -> Tensors:
    """values^-lr_power. Square roots are correctly rounded, unlike torch's float32 square roots on the CPU."""
    if lr_power == -0.5:
        if values[0].dtype is torch.float32 and values[0].device.type == "cpu":
            return [value.double().sqrt_().float() for value in values]
        return list(torch._foreach_sqrt(values))
    return list(torch._foreach_pow(values, -lr_power))


def _ftrl(
    var: Tensors,
    accum: Tensors,
    linear: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    l2_shrinkage: float,
    lr_power: float,
    multiply_linear_by_lr: bool,
    rows: bool,
) -> None:
    """n = accum + g^2;  s = (n^-p - accum^-p) / lr;  linear += g + 2 * l2_shrinkage * var - s * var;
    var = (sign(linear) * l1 - linear) / (n^-p / lr + 2 * l2) where |linear| > l1, else 0;  accum = n

    With `multiply_linear_by_lr` the linear slot is multiplied by lr. If |linear| is just above l1, the variable is a small
    difference of large numbers, so each operation is rounded separately, in TensorFlow's order. As in TensorFlow, a NaN in
    `linear` makes rows NaN and elements of whole variables 0.
    """
    scale, divide = _ftrl_scale(lr, multiply_linear_by_lr)
    if lr_power == -0.5 and _in_one_pass(var, grad):
        numbers = (scale, divide, 2 * l2_shrinkage, l1 * scale, 2 * l2 * scale, rows)
        _one_pass(native.FTRL, numbers, var, accum, linear, grad)
        return
    before = _powers(accum, lr_power)
    torch._foreach_add_(accum, torch._foreach_mul(grad, grad))
    after = _powers(accum, lr_power)
    pulls = grad
    if l2_shrinkage:
        pulls = torch._foreach_add(grad, torch._foreach_mul(var, 2 * l2_shrinkage))
    pulls = torch._foreach_mul(pulls, scale)
    slopes = torch._foreach_sub(after, before)
    torch._foreach_div_(slopes, divide)
    torch._foreach_mul_(slopes, var)
    torch._foreach_sub_(pulls, slopes)
    torch._foreach_add_(linear, pulls)
    torch._foreach_div_(after, divide)
    torch._foreach_add_(after, 2 * l2 * scale)
    limit = l1 * scale
    for value, pulled, below in zip(var, linear, after):
        if rows:
            value.copy_((pulled.clamp(-limit, limit) - pulled) / below)
        else:
            value.copy_(torch.where(pulled.abs() > limit, (pulled.sign() * limit - pulled) / below, 0))


def _ftrl_scale(lr: float, multiply_linear_by_lr: bool) -> tuple[float, float]:
    """What the gradient is multiplied by, and what the powers are divided by."""
    return (lr, 1.0) if multiply_linear_by_lr else (1.0, lr)


def _ftrl_row_loop(
    grad: Tensors, lr: float, l1: float, l2: float, *shrinkage_and_power: float, multiply_linear_by_lr: bool
) -> RowLoop | None:
    scale, divide = _ftrl_scale(lr, multiply_linear_by_lr)
    *shrinkage, power = shrinkage_and_power
    numbers = (scale, divide, 2 * sum(shrinkage), l1 * scale, 2 * l2 * scale, 1.0)
    return (native.FTRL, numbers) if power == -0.5 else None


def _ftrl_rows(
    var: Tensors,
    accum: Tensors,
    linear: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    lr_power: float,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    _ftrl(var, accum, linear, grad, lr, l1, l2, 0.0, lr_power, multiply_linear_by_lr, rows=True)


@update(
    "Ftrl(var, accum, linear; grad, lr, l1, l2, lr_power)",
    checked_signs=("sparse",),
    complex_numbers=False,
    sparse=_ftrl_rows,
    row_loop=_ftrl_row_loop,
    multiply_linear_by_lr=False,
)
def FTRL(
    var: Tensors,
    accum: Tensors,
    linear: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    lr_power: float,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    _ftrl(var, accum, linear, grad, lr, l1, l2, 0.0, lr_power, multiply_linear_by_lr, rows=False)


def _ftrl_v2_rows(
    var: Tensors,
    accum: Tensors,
    linear: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    l2_shrinkage: float,
    lr_power: float,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    _ftrl(var, accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power, multiply_linear_by_lr, rows=True)


@update(
    "FtrlV2(var, accum, linear; grad, lr, l1, l2, l2_shrinkage, lr_power)",
    checked_signs=("sparse",),
    late_number="lr_power",
    complex_numbers=False,
    sparse=_ftrl_v2_rows,
    row_loop=_ftrl_row_loop,
    multiply_linear_by_lr=False,
)
def FTRL_V2(
    var: Tensors,
    accum: Tensors,
    linear: Tensors,
    grad: Tensors,
    lr: float,
    l1: float,
    l2: float,
    l2_shrinkage: float,
    lr_power: float,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    _ftrl(var, accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power, multiply_linear_by_lr, rows=False)
