"""`tf.contrib.opt.ExternalOptimizerInterface`: losses minimized by an algorithm outside of the graph, and by SciPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.ops.array import constants, joining, shaping
from stoker._src.ops.control_flow import gradients
from stoker._src.ops.variables import variable_functions
from stoker._src.ops.variables.variables import ResourceVariable
from stoker._src.runtime.session import get_default_session


@export(v1="contrib.opt.ExternalOptimizerInterface")
class ExternalOptimizerInterface:
    """Base class for optimizers that see the variables as one vector. A subclass implements `_minimize`.

    Args:
        loss: a scalar tensor.
        var_list: the variables to change; by default all trainable ones. They have one dtype.
        equalities: tensors to be held at zero, if the algorithm knows constraints.
        inequalities: tensors to be held at zero or above.
        var_to_bounds: {variable: (lower, upper)}; numbers or arrays that broadcast to the variable.
        **optimizer_kwargs: handed on to `_minimize`.

    Raises:
        ValueError: a bound is not a pair, or does not broadcast to its variable.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Any = None,
        equalities: Any = None,
        inequalities: Any = None,
        var_to_bounds: Any = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._vars = variable_functions.trainable_variables() if var_list is None else list(var_list)
        self._loss = loss
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._packed_bounds = None if var_to_bounds is None else self._pack_bounds(var_to_bounds)
        self.optimizer_kwargs = optimizer_kwargs
        self._packed_var = self._pack(self._vars)
        self._packed_loss_grad, *grads = map(self._gradient, [self._loss, *self._equalities, *self._inequalities])
        self._equality_grads, self._inequality_grads = grads[: len(self._equalities)], grads[len(self._equalities) :]
        sizes = [int(np.prod(each.shape.as_list())) for each in self._vars]
        ends = np.cumsum(sizes).tolist()
        self._slices = [slice(end - size, end) for size, end in zip(sizes, ends)]
        self._placeholders = [constants.placeholder(each.dtype.base_dtype, each.shape) for each in self._vars]
        # A reference variable can be fed. Feeding a resource variable would reach only one of the ops that read it.
        resources = [isinstance(each, ResourceVariable) for each in self._vars]
        self._fed = [i for i, each in enumerate(resources) if not each]
        self._assigned = [i for i, each in enumerate(resources) if each]
        self._updates = [each.assign(value) for each, value in zip(self._vars, self._placeholders)]

    def _pack(self, tensors: Any) -> Any:
        """One vector of all elements."""
        return joining.concat([shaping.reshape(each, [-1]) for each in tensors], 0)

    def _gradient(self, target: Any) -> Any:
        found = gradients.gradients(target, self._vars)
        return self._pack([shaping.zeros_like(each) if grad is None else grad for grad, each in zip(found, self._vars)])

    def _pack_bounds(self, var_to_bounds: Any) -> list[tuple[Any, Any]]:
        packed = []
        given = {id(key): value for key, value in var_to_bounds.items()}
        for variable in self._vars:
            lower, upper = given.get(id(variable), (-np.inf, np.inf))
            shape = variable.shape.as_list()
            both = [np.broadcast_to(each, shape).reshape(-1).tolist() for each in (lower, upper)]
            packed.extend(zip(*both))
        return packed

    def _unpacked(self, vector: Any) -> list[Any]:
        """The value of each variable in a vector."""
        return [
            np.reshape(vector[place], each.shape.as_list()).astype(each.dtype.base_dtype.as_numpy_dtype)
            for place, each in zip(self._slices, self._vars)
        ]

    def minimize(
        self,
        session: Any = None,
        feed_dict: Any = None,
        fetches: Any = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes the loss. Reference variables are fed until the end and assigned then; resource variables at each evaluation.

        Args:
            session: by default the default session.
            feed_dict: what each evaluation feeds.
            fetches: tensors that each evaluation of the loss fetches, too, for `loss_callback`.
            step_callback: called with the vector after each step of the algorithm.
            loss_callback: called with the values of `fetches` after each evaluation of the loss.
            **run_kwargs: arguments of `session.run`.
        """
        session = session or get_default_session()
        feeds, extra = dict(feed_dict or {}), list(fetches or ())

        def assign(variables: list[int], values: list[Any]) -> None:
            fed = {self._placeholders[i]: values[i] for i in variables}
            session.run([self._updates[i] for i in variables], feed_dict=fed, **run_kwargs)

        def evaluated(tensors: list[Any], more: list[Any], callback: Any, vector: Any) -> list[Any]:
            values, fed = self._unpacked(vector), dict(feeds)
            fed.update((self._vars[i], values[i]) for i in self._fed)
            assign(self._assigned, values)
            found = session.run([*tensors, *more], feed_dict=fed, **run_kwargs)
            callback(*found[len(tensors) :])
            return found[: len(tensors)]

        def functions(tensors: list[Any]) -> list[Any]:
            return [functools.partial(evaluated, [each], [], _ignored) for each in tensors]

        found = self._minimize(
            initial_val=session.run(self._packed_var, feed_dict=feeds, **run_kwargs),
            loss_grad_func=functools.partial(
                evaluated, [self._loss, self._packed_loss_grad], extra, loss_callback or _ignored
            ),
            equality_funcs=functions(self._equalities),
            equality_grad_funcs=functions(self._equality_grads),
            inequality_funcs=functions(self._inequalities),
            inequality_grad_funcs=functions(self._inequality_grads),
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or _ignored,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        assign(list(range(len(self._vars))), self._unpacked(found))

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Any,
        equality_funcs: Any,
        equality_grad_funcs: Any,
        inequality_funcs: Any,
        inequality_grad_funcs: Any,
        packed_bounds: Any,
        step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:
        """Returns the vector with the least loss that the algorithm finds.

        Args:
            initial_val: the vector to start from.
            loss_grad_func: returns the loss and its gradient for a vector.
            equality_funcs, inequality_funcs: return the constraints for a vector, each in a list.
            equality_grad_funcs, inequality_grad_funcs: return their gradients, each in a list.
            packed_bounds: pairs of the least and the greatest value of each element, or None.
            step_callback: to be called with the vector after each step.
            optimizer_kwargs: those of the constructor.
        """
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() method."
        )


def _ignored(*_: Any) -> None:
    """The callback of a caller who wants none."""


@export(v1="contrib.opt.ScipyOptimizerInterface")
class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes with `scipy.optimize.minimize`.

    The keyword arguments of the constructor are those of `scipy.optimize.minimize`: `method` (L-BFGS-B by default; SLSQP knows
    constraints), `options`, `tol` and others that are not computed from the graph.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Any,
        equality_funcs: Any,
        equality_grad_funcs: Any,
        inequality_funcs: Any,
        inequality_grad_funcs: Any,
        packed_bounds: Any,
        step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:
        try:
            import scipy.optimize
        except ImportError as error:
            raise ImportError("ScipyOptimizerInterface needs SciPy: pip install scipy.") from error

        def in_doubles(vector: Any) -> Any:
            loss, gradient = loss_grad_func(vector)
            return loss, gradient.astype(np.float64)  # SciPy's algorithms compute in double precision only

        made = {"jac": True, "callback": step_callback, "bounds": packed_bounds}
        constraints = [
            {"type": kind, "fun": function, "jac": gradient}
            for kind, values, grads in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for function, gradient in zip(values, grads)
        ]
        if constraints:
            made["constraints"] = constraints
        clash = {*made, "constraints"} & set(optimizer_kwargs)
        if clash:
            raise ValueError(
                f"ScipyOptimizerInterface sets {', '.join(sorted(clash))} itself, from var_to_bounds, equalities, inequalities and step_callback."
            )
        result = scipy.optimize.minimize(
            in_doubles, initial_val.astype(np.float64), **{"method": self._DEFAULT_METHOD, **optimizer_kwargs, **made}
        )
        tf_logging.info(
            "Optimization terminated with:\n  Message: %s\n  Objective function value: %f\n  Number of iterations: %d\n"
            "  Number of functions evaluations: %d",
            result.message,
            result.fun,
            result.nit,
            result.nfev,
        )
        return result.x
