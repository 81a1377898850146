"""Learning rates that depend on the step.

In graph mode each function returns a tensor, which is evaluated at every step. In eager mode it returns a function without
arguments that computes the rate from the current step; optimizers accept such functions.
"""

from __future__ import annotations

import itertools
import math as numbers
from collections.abc import Callable
from typing import Any

import ml_dtypes

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, joining, selection
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.random import uniform_normal


def _decayed(function: str, global_step: Any, compute: Callable[[], Any]) -> Any:
    """Returns the rate in graph mode, or the function that computes it in eager mode."""
    if global_step is None:
        raise ValueError(f"global_step is required for {function}.")
    return compute if context.executing_eagerly() else compute()


def _rate(learning_rate: Any) -> Tensor:
    return convert_to_tensor(learning_rate, name="initial_learning_rate")


@export(v1="train.exponential_decay")
def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """learning_rate * decay_rate^(global_step / decay_steps); with `staircase` the exponent is rounded down.

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "ExponentialDecay", [learning_rate, global_step, decay_steps, decay_rate]) as scope:
            return _exponential(learning_rate, global_step, decay_steps, decay_rate, staircase, scope)

    return _decayed("exponential_decay", global_step, compute)


def _exponential(learning_rate: Any, step: Any, decay_steps: Any, decay_rate: Any, staircase: bool, scope: str) -> Any:
    rate = _rate(learning_rate)
    dtype = rate.dtype.base_dtype
    decay_steps, decay_rate = casting.cast(decay_steps, dtype), casting.cast(decay_rate, dtype)
    exponent = casting.cast(step, dtype) / decay_steps
    if staircase:
        exponent = unary_functions.FLOOR(exponent)
    return arithmetic.multiply(rate, arithmetic.POW(decay_rate, exponent), name=scope)


@export(v1="train.natural_exp_decay")
def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """learning_rate * exp(-decay_rate * global_step / decay_steps); with `staircase` the ratio is rounded down.

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "ExponentialTimeDecay", [learning_rate, global_step, decay_rate]) as scope:
            base = unary_functions.exp(unary_functions.negative(decay_rate))
            return _exponential(learning_rate, global_step, decay_steps, base, staircase, scope)

    return _decayed("natural_exp_decay", global_step, compute)


@export(v1="train.inverse_time_decay")
def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """learning_rate / (1 + decay_rate * global_step / decay_steps); with `staircase` the ratio is rounded down.

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "InverseTimeDecay", [learning_rate, global_step, decay_rate]) as scope:
            rate = _rate(learning_rate)
            dtype = rate.dtype.base_dtype
            steps, factor = casting.cast(decay_steps, dtype), casting.cast(decay_rate, dtype)
            ratio = casting.cast(global_step, dtype) / steps
            if staircase:
                ratio = unary_functions.FLOOR(ratio)
            one = casting.cast(constants.constant(1), dtype)
            return arithmetic.REAL_DIV(rate, arithmetic.add(one, arithmetic.multiply(factor, ratio)), name=scope)

    return _decayed("inverse_time_decay", global_step, compute)


@export(v1="train.polynomial_decay")
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    """(learning_rate - end_learning_rate) * (1 - step / decay_steps)^power + end_learning_rate

    Steps beyond `decay_steps` count as `decay_steps`. With `cycle`, `decay_steps` is replaced by its smallest multiple that is at least
    the step, so that the rate jumps up and decays again.

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        given = [learning_rate, global_step, decay_steps, end_learning_rate, power]
        with name_scope(name, "PolynomialDecay", given) as scope:
            rate = _rate(learning_rate)
            dtype = rate.dtype.base_dtype
            end, exponent = casting.cast(end_learning_rate, dtype), casting.cast(power, dtype)
            step, steps = casting.cast(global_step, dtype), casting.cast(decay_steps, dtype)
            if cycle:
                # Step 0 belongs to the first period, so its multiple is 1 and not 0.
                periods = unary_functions.CEIL(step / steps)
                steps = arithmetic.multiply(steps, arithmetic.MAXIMUM(periods, constants.constant(1.0, dtype)))
            else:
                step = arithmetic.MINIMUM(step, steps)
            left = 1 - step / steps
            return arithmetic.add(arithmetic.multiply(rate - end, arithmetic.POW(left, exponent)), end, name=scope)

    return _decayed("polynomial_decay", global_step, compute)


@export(v1=("train.piecewise_constant", "train.piecewise_constant_decay"))
def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    """values[0] for x <= boundaries[0], values[i] for boundaries[i-1] < x <= boundaries[i], values[-1] beyond the last.

    Args:
        x: a scalar, usually the step.
        boundaries: increasing numbers of the dtype of `x`.
        values: one more than there are boundaries, all of one dtype.
        name: the name of the op, `PiecewiseConstant` by default.

    Raises:
        ValueError: counts or dtypes do not match, or `x` is not a scalar.
        InvalidArgumentError: at run time, boundaries do not increase and `x` lies in two intervals.
    """
    if x is None:
        raise ValueError("x is required for piecewise_constant.")
    boundaries, values = nest.flatten(boundaries), nest.flatten(values)
    if len(boundaries) != len(values) - 1:
        raise ValueError(
            "The length of boundaries should be 1 less than the length of values: "
            f"there are {len(boundaries)} boundaries and {len(values)} values"
        )

    def converted() -> tuple[Tensor, list[Tensor], list[Tensor]]:
        at = convert_to_tensor(x)
        dtype = at.dtype.base_dtype
        limits = [_limit(boundary, dtype) for boundary in boundaries]
        results = [convert_to_tensor(value) for value in values]
        if at.static_shape.rank not in (None, 0):
            raise ValueError(f"Shape must be rank 0 but is rank {at.static_shape.rank} for x of piecewise_constant.")
        for value in results[1:]:
            if value.dtype.base_dtype is not results[0].dtype.base_dtype:
                raise ValueError(
                    f"Values must have elements all with the same dtype ({results[0].dtype.base_dtype!r} vs "
                    f"{value.dtype.base_dtype!r})."
                )
        return at, limits, results

    def compute() -> Any:
        at, limits, results = converted()
        with name_scope(name, "PiecewiseConstant", [at, *limits, *results]):
            if len(limits) > 1 and not _increase(boundaries):
                return _only_case(at, limits, results)
            chosen = results[-1]
            for limit, value in zip(reversed(limits), reversed(results[:-1])):
                chosen = selection.SELECT(comparison.LESS_EQUAL(at, limit), value, chosen)
            return chosen

    if not context.executing_eagerly():
        return compute()
    converted()  # reports invalid arguments immediately, as in a graph
    return compute


def _increase(boundaries: list[Any]) -> bool:
    """Whether boundaries are plain increasing numbers. For tensors this is unknown, and the result is False."""
    plain = all(isinstance(each, (int, float)) for each in boundaries)
    return plain and all(first < second for first, second in itertools.pairwise(boundaries))


def _only_case(at: Tensor, limits: list[Tensor], results: list[Tensor]) -> Tensor:
    """Returns the value of the only interval that contains `at`, or the first value if there is none. Two intervals are an error."""
    cases: list[Any] = [comparison.LESS_EQUAL(at, limits[0]), comparison.GREATER(at, limits[-1])]
    for low, high in itertools.pairwise(limits):
        cases.append(comparison.LOGICAL_AND(comparison.GREATER(at, low), comparison.LESS_EQUAL(at, high)))
    count = reductions.reduce_sum(casting.cast(joining.PACK(cases), dtypes.int32))
    single = comparison.LESS_EQUAL(count, constants.constant(1))
    message = "Input error: exclusive=True: more than 1 conditions evaluated as True, as boundaries do not increase:"
    check = assertions.assert_op(single, [message, *limits])
    chosen = results[0]
    with control_dependencies([] if check is None else [check]):
        for case, value in zip(cases, [results[0], results[-1], *results[1:-1]]):
            chosen = selection.SELECT(case, value, chosen)
        return chosen


def _limit(boundary: Any, dtype: Any) -> Tensor:
    limit = convert_to_tensor(boundary)
    if limit.dtype.base_dtype is dtype:
        return limit
    # Plain integers become int32, but steps are usually int64.
    if limit.dtype.base_dtype is dtypes.int32 and dtype is dtypes.int64:
        return casting.cast(limit, dtype)
    raise ValueError(f"Boundaries ({limit.dtype.base_dtype!r}) must have the same dtype as x ({dtype!r}).")


@export(v1="train.cosine_decay")
def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0, name: str | None = None
) -> Any:
    """learning_rate * ((1 - alpha) * (1 + cos(pi * s / decay_steps)) / 2 + alpha), s = min(global_step, decay_steps).

    (Loshchilov and Hutter, 2016)

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "CosineDecay", [learning_rate, global_step]):
            rate = _rate(learning_rate)
            dtype = rate.dtype.base_dtype
            steps = casting.cast(decay_steps, dtype)
            done = arithmetic.MINIMUM(casting.cast(global_step, dtype), steps) / steps
            cosine = 0.5 * (1.0 + unary_functions.COS(constants.constant(numbers.pi, dtype) * done))
            return arithmetic.multiply(rate, (1 - alpha) * cosine + alpha)

    return _decayed("cosine_decay", global_step, compute)


@export(v1="train.cosine_decay_restarts")
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Any:
    """Cosine decay with restarts: period i is t_mul^i times `first_decay_steps` long and starts at m_mul^i.

    learning_rate * ((1 - alpha) * m_mul^i * (1 + cos(pi * fraction of the period)) / 2 + alpha)
    (Loshchilov and Hutter, 2016)

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "SGDRDecay", [learning_rate, global_step]) as scope:
            rate = _rate(learning_rate)
            dtype = rate.dtype.base_dtype
            first, least = casting.cast(first_decay_steps, dtype), casting.cast(alpha, dtype)
            longer, lower = casting.cast(t_mul, dtype), casting.cast(m_mul, dtype)
            done = casting.cast(global_step, dtype) / first
            period, fraction = _period(done, longer, dtype)
            peak = arithmetic.POW(lower, period)
            cosine = 0.5 * peak * (1.0 + unary_functions.COS(constants.constant(numbers.pi, dtype) * fraction))
            return arithmetic.multiply(rate, (1 - least) * cosine + least, name=scope)

    return _decayed("cosine_decay_restarts", global_step, compute)


def _period(done: Any, longer: Any, dtype: Any) -> tuple[Any, Any]:
    """Returns the number of the period and the elapsed fraction of it, after `done` lengths of the first period."""
    one = constants.constant(1.0, dtype)
    equal = comparison.EQUAL(longer, one)
    # With periods of equal length the formula below divides by zero. It is evaluated for 2 instead, and the result is selected later.
    growth = selection.SELECT(equal, constants.constant(2.0, dtype), longer)
    # The quotient is an integer where a period begins. Rounding errors must not move it into the previous period.
    slack = constants.constant(100 * float(ml_dtypes.finfo(dtype.as_numpy_dtype).eps), dtype)
    number = unary_functions.FLOOR(
        unary_functions.log(1.0 - done * (1.0 - growth)) / unary_functions.log(growth) + slack
    )
    power = arithmetic.POW(growth, number)
    begun = (1.0 - power) / (1.0 - growth)
    plain = unary_functions.FLOOR(done)
    return (
        selection.SELECT(equal, plain, number),
        selection.SELECT(equal, done - plain, (done - begun) / power),
    )


@export(v1="train.linear_cosine_decay")
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Any:
    """learning_rate * ((alpha + linear) * cosine + beta) with s = min(global_step, decay_steps),
    linear = (decay_steps - s) / decay_steps and cosine = (1 + cos(2 * pi * num_periods * s / decay_steps)) / 2.

    (Bello et al., 2017)

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "LinearCosineDecay", [learning_rate, global_step]) as scope:
            rate = _rate(learning_rate)
            return _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, None, scope)

    return _decayed("linear_cosine_decay", global_step, compute)


@export(v1="train.noisy_linear_cosine_decay")
def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Any:
    """Linear cosine decay with noise of variance initial_variance / (1 + s)^variance_decay added to the linear part.

    (Bello et al., 2017)

    Raises:
        ValueError: `global_step` is None.
    """

    def compute() -> Any:
        with name_scope(name, "NoisyLinearCosineDecay", [learning_rate, global_step]) as scope:
            rate = _rate(learning_rate)
            noise = (initial_variance, variance_decay)
            return _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, noise, scope)

    return _decayed("noisy_linear_cosine_decay", global_step, compute)


def _linear_cosine(
    rate: Tensor, global_step: Any, decay_steps: Any, num_periods: Any, alpha: Any, beta: Any, noise: Any, scope: str
) -> Any:
    dtype = rate.dtype.base_dtype
    steps: Any = casting.cast(decay_steps, dtype)
    periods: Any = casting.cast(num_periods, dtype)
    least: Any = casting.cast(alpha, dtype)
    offset: Any = casting.cast(beta, dtype)
    step = arithmetic.MINIMUM(casting.cast(global_step, dtype), steps)
    linear = (steps - step) / steps
    if noise is not None:
        variance, decay = (casting.cast(each, dtype) for each in noise)
        deviation = unary_functions.sqrt(variance / arithmetic.POW(1.0 + step, decay))
        linear = linear + uniform_normal.random_normal([], stddev=deviation, dtype=dtype)
    cosine = 0.5 * (1.0 + unary_functions.COS(constants.constant(numbers.pi, dtype) * (2.0 * periods * (step / steps))))
    return arithmetic.multiply(rate, (least + linear) * cosine + offset, name=scope)
