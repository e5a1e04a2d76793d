"""How many prompts a request carries: the longer the prompts, the fewer go together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cliffwatch.workload.parts import Batch


def batch_weights(spec: Batch, input_tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Unnormalised weights, one row a length and one column a size.

    A batch of b prompts of L tokens weighs exp(-falloff * (b - 1) * L / token_budget): short prompts go in batches of
    any size nearly alike, and the weight of a large batch falls as its prompts grow. Above max(1, token_budget / L)
    prompts it is zero: with a budget of 16k a prompt of 1k may go 16 at once, one of 32k goes alone.
    """
    sizes = np.asarray(spec.sizes, dtype=np.int64)
    tokens = input_tokens[:, np.newaxis] * sizes
    extra = (tokens - input_tokens[:, np.newaxis]) / spec.token_budget
    extra -= extra[:, :1]  # relative to the smallest size, so that a steep falloff cannot make every weight zero
    allowed = (tokens <= spec.token_budget) | (sizes == 1)
    weights: NDArray[np.float64] = np.where(allowed, np.exp(-spec.falloff * extra), 0.0)
    return weights


def draw_batches(spec: Batch, input_tokens: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One size for each length, drawn by `batch_weights` with one random number each."""
    edges = np.cumsum(batch_weights(spec, input_tokens), axis=1)
    wanted = rng.random(len(input_tokens)) * edges[:, -1]
    index = (edges <= wanted[:, np.newaxis]).sum(axis=1)
    drawn: NDArray[np.int64] = np.asarray(spec.sizes, dtype=np.int64)[index]
    return drawn
