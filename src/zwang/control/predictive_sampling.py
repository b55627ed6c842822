"""Planning by predictive sampling: many noisy controls, one batched rollout, and their weighted mean.

Controls are splines of few knots, so that noise moves a mechanism. The weights are

    w = exp(-(cost - least) / (temperature s)),    s the standard deviation of the costs of the samples,

those of model predictive path integrals with the temperature relative to s, so that the unit of the cost does
not matter. The plan is the weighted mean, or the best sample where that costs less; a temperature of 0 takes
the best sample. Source: Williams, Drews, Goldfain, Rehg, Theodorou, "Aggressive driving with model predictive
path integral control" (ICRA 2016); Howell et al., "Predictive sampling: real-time behaviour synthesis with
MuJoCo" (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.arguments.memory_limit import check_memory
from zwang.api.arguments.validation import short_repr, validated_arguments
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.api.compilation.feedback_rollout import acting_bounds
from zwang.errors import ArgumentError, ShapeError, StateError


class SampledPlan(NamedTuple):
    """knots (knots, nu), and the controls (steps, nu) that interpolate them; cost: of the plan's own rollout;
    least: the least cost of all samples.
    """

    knots: np.ndarray
    control: np.ndarray
    cost: float
    least: float


@validated_arguments()
def predictive_sampling(
    fast: CompiledMechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    knots: npt.ArrayLike,
    cost: Callable[[np.ndarray, np.ndarray, np.ndarray], npt.ArrayLike],
    *,
    steps: int,
    noise: npt.ArrayLike,
    samples: int = 128,
    temperature: float = 0.0,
    seed: int | np.random.Generator = 0,
    activation: npt.ArrayLike = (),
    step: float | None = None,
    integrator: str | None = None,
    time: float = 0.0,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> SampledPlan:
    """A better plan of controls from a state, by rollouts of `samples` noisy copies of the plan.

    fast: the compiled mechanism, without symbols. q (nq,), v (nv,), activation (nz,): the state. knots
    (knots, nu): the plan so far, over `steps` steps, interpolated linearly; the plan itself is one of the
    samples. cost(q, v, u): the cost (samples,) of states (samples, steps, size) after each step and controls
    (samples, steps, nu). noise: the standard deviation of the knots, a number or (nu,). temperature: that of
    the weights exp(-(cost - least) / (temperature s)), a multiple of the standard deviation s of the costs of
    the samples; the better one of the weighted mean and the best sample is returned, for 0 the best sample.
    seed: of the noise, or a generator that goes on. time [s]: of the state; in a running loop the present
    time, as constraints and set points may depend on it. bounds: the lowest and highest controls, each a
    number or (nu,); samples are within these and the control ranges of the inputs. Samples that fail count
    as infinitely bad. Raises ShapeError, StateError, ArgumentError, also for bounds without room within a
    control range, ParameterError for symbols, and SimulationError for rollouts that do not fit into memory.
    """
    plan = validation.real_values(knots, "knots")
    if plan.ndim != 2 or len(plan) < 2:
        raise ShapeError(f"knots must have the shape (2 or more, inputs); its shape is {plan.shape}")
    if not np.isfinite(plan).all():
        raise StateError("knots must hold finite numbers")
    if samples < 1 or steps < 1 or temperature < 0:
        raise ArgumentError(
            f"samples ({samples}) and steps ({steps}) must be positive, and temperature ({temperature}) not "
            "negative"
        )
    m = validation.numeric_mechanism(fast.mechanism)
    lowest, highest = acting_bounds(m, bounds)
    nu = len(lowest)
    if plan.shape[1] != nu:
        raise ShapeError(f"knots must have the shape (2 or more, {nu} inputs); its shape is {plan.shape}")
    check_memory(samples, steps, m.nq + m.nv + nu)
    start = validation.configuration(m, q), validation.vector(v, m.nv, "v", "nv")
    changes = _random_changes(noise, seed, (samples, *plan.shape))
    tried = np.clip(plan + changes, lowest, highest)
    weights = _interpolation(len(plan), steps)
    options: dict[str, Any] = {"step": step, "integrator": integrator, "activation": activation, "time": time}

    def costs_of(candidates: np.ndarray) -> np.ndarray:
        u = np.einsum("sk,nku->nsu", weights, candidates)
        q0, v0 = (np.broadcast_to(x, (len(u), x.size)) for x in start)
        run = fast.rollout(q0, v0, u, steps=steps, **options)
        found = validation.real_values(cost(run[0], run[1], u), "the result of cost")
        if found.shape != (len(u),):
            raise ShapeError(f"cost must return the shape ({len(u)},); it returned {found.shape}")
        return np.where(np.isfinite(found), found, np.inf)

    costs = costs_of(tried)
    best = int(np.argmin(costs))
    if temperature > 0 and np.isfinite(costs[best]):
        finite = np.isfinite(costs)
        spread = temperature * max(float(np.std(costs[finite])), 1e-300)
        share = np.where(finite, np.exp(-(costs - costs[best]) / spread), 0.0)
        mean = np.einsum("n,nku->ku", share / share.sum(), tried)
        mean_cost = float(costs_of(mean[None])[0])
        if mean_cost <= costs[best]:
            return SampledPlan(mean, weights @ mean, mean_cost, float(costs[best]))
    return SampledPlan(tried[best], weights @ tried[best], float(costs[best]), float(costs[best]))


def _random_changes(
    noise: npt.ArrayLike, seed: int | np.random.Generator, shape: tuple[int, int, int]
) -> np.ndarray:
    """Normal changes (samples, knots, nu) of the knots with the standard deviation `noise`; 0 for the first
    sample. Raises ShapeError, StateError and ArgumentError.
    """
    nu, deviation = shape[-1], validation.real_values(noise, "noise")
    if deviation.shape not in ((), (nu,)) or not ((deviation >= 0) & np.isfinite(deviation)).all():
        raise ShapeError(
            f"noise is {short_repr(noise)}; give a number or {nu} numbers, finite and not negative"
        )
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"seed is {short_repr(seed)}; give an integer from 0 on, or a numpy.random.Generator"
        ) from error
    changes = rng.normal(size=shape) * deviation
    changes[0] = 0
    return changes


def _interpolation(knots: int, steps: int) -> np.ndarray:
    """Weights (steps, knots) of the knots in the control of each step; the first knot is at the first
    step.
    """
    position = np.linspace(0, knots - 1, steps)
    return np.maximum(0, 1 - np.abs(position[:, None] - np.arange(knots)))
