"""Ways to interpolate a latency between measured cells, in logarithms of length, batch and seconds.

Each is a function of measured cells (`Fit`) whose result predicts at places: what wins a cross-validation is used
(docs/surfaces.md#what-an-untried-point-would-cost).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator, RBFInterpolator
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize, nnls

from cliffwatch.surface.cells import Array

Predict = Callable[[Array], Array]  # places (k, 2), log2 of length and batch -> natural logarithms of seconds (k,)
Fit = Callable[[Array, Array], Predict]  # places (n, 2) and logarithms of seconds (n,) of the measured cells
# Of log length, log batch, and of noise against signal, as logarithms: where the likelihood's search starts and ends.
_START = np.log([2.0, 2.0, 1e-2])
_BOUNDS = [(np.log(0.3), np.log(30.0)), (np.log(0.3), np.log(30.0)), (np.log(1e-6), np.log(1.0))]


def radial(places: Array, logs: Array) -> Predict:
    """Thin-plate splines with a linear part."""
    surface = RBFInterpolator(places, logs, kernel="thin_plate_spline", degree=1)
    return lambda at: np.asarray(surface(at))


def splines(places: Array, logs: Array) -> Predict:
    """Monotone cubics (PCHIP) along length at each batch, then across the batches that reach so far.

    Not a number where no two batches, or two lengths of one, enclose a place.
    """
    lines = []
    for batch in np.unique(places[:, 1]):
        mine = places[:, 1] == batch
        order = np.argsort(places[mine, 0])
        if mine.sum() > 1:
            lines.append((batch, PchipInterpolator(places[mine, 0][order], logs[mine][order], extrapolate=False)))

    def one(place: Array) -> float:
        known = [(batch, value) for batch, line in lines if np.isfinite(value := float(line(place[0])))]
        exact = [value for batch, value in known if batch == place[1]]
        if exact or len(known) < 2:
            return exact[0] if exact else float("nan")
        batches, values = zip(*known, strict=True)
        return float(PchipInterpolator(batches, values, extrapolate=False)(place[1]))

    return lambda at: np.array([one(place) for place in at])


def work(places: Array, logs: Array) -> Predict:
    """Seconds as a floor, a share a prompt, a token and a pair of tokens: the terms of a roofline, none below zero.

    Least squares of relative errors.
    """
    solution, _ = nnls(_terms(places) / np.exp(logs)[:, None], np.ones(logs.size))
    return lambda at: np.log(np.maximum(_terms(at) @ solution, np.finfo(float).tiny))


def _terms(places: Array) -> Array:
    tokens, prompts = np.exp2(places).T
    # Divided by a common size of each, so that the solver sees numbers of one order.
    return np.column_stack([np.ones_like(tokens), prompts / 8, tokens * prompts / 1e4, tokens**2 * prompts / 1e8])


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Matérn 5/2 with a length scale a dimension, in octaves, and a share of noise."""

    scales: Array
    noise: float

    def between(self, one: Array, other: Array) -> Array:
        steps = (one[:, None, :] - other[None, :, :]) / self.scales
        far = np.sqrt(5 * (steps**2).sum(axis=-1))
        return np.asarray((1 + far + far**2 / 3) * np.exp(-far))

    def of(self, places: Array) -> Array:
        return self.between(places, places) + self.noise * np.eye(len(places))


def gaussian(places: Array, logs: Array) -> Predict:
    """A Gaussian process about a plane; length scales and noise where the marginal likelihood is greatest.

    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, eq. 2.30 with the signal's variance in
    closed form; the plane is fitted by least squares beforehand.
    """
    basis = np.column_stack([np.ones(len(places)), places])
    plane, *_ = np.linalg.lstsq(basis, logs, rcond=None)
    rest = logs - basis @ plane

    def cost(raw: Array) -> float:
        kernel = _Kernel(np.exp(raw[:2]), float(np.exp(raw[2])))
        try:
            factor = cho_factor(kernel.of(places), lower=True)
        except LinAlgError:
            return 1e9
        variance = max(float(rest @ cho_solve(factor, rest)) / rest.size, np.finfo(float).tiny)
        return float(np.log(np.diag(factor[0])).sum() + rest.size * np.log(variance) / 2)

    best = minimize(cost, _START, method="L-BFGS-B", bounds=_BOUNDS).x
    kernel = _Kernel(np.exp(best[:2]), float(np.exp(best[2])))
    weights = cho_solve(cho_factor(kernel.of(places), lower=True), rest)
    return lambda at: np.column_stack([np.ones(len(at)), at]) @ plane + kernel.between(at, places) @ weights


def _corrected(correction: Fit) -> Fit:
    def fit(places: Array, logs: Array) -> Predict:
        first = work(places, logs)
        then = correction(places, logs - first(places))
        return lambda at: first(at) + then(at)

    return fit


CANDIDATES: dict[str, Fit] = {
    "radial": radial,
    "splines": splines,
    "gaussian": gaussian,
    "work": work,
    "work+radial": _corrected(radial),
    "work+gaussian": _corrected(gaussian),
}
