"""How long one engine step takes: a roofline in fitted form, its coefficients in seconds.

The roofline itself, with operations, bytes and data sheets, is `cliffwatch.roofline`; here each of its slopes is one
number, either fitted to measurements of a real engine or worked out from data sheets (`estimate.py`).

A step without prefill is bound by memory: the weights are read once, then every sequence's keys and values; or, in a
large batch, by arithmetic:

    max(decode_base_s, prefill_token_s * sequences) + decode_sequence_s * sequences + context_token_s * context tokens

With CUDA graphs the batch is padded to the next size that was recorded, and padding costs what a sequence costs.
Without them (or past the largest) the host launches every kernel: that takes `eager_launch_s`, beside the work. Where
sequences of the batch share cache blocks, only the first reading of a block costs `context_token_s`; the chip's own
cache serves the repeated ones at `repeated_token_s`. A mixture of experts reads `routed_s` of experts more as far as
the batch chooses them: `1 - (1 - routed_share) ** sequences` of them.

A step with prefill is bound by arithmetic, but never shorter than the host's launching of its kernels:

    max(prefill_floor_s, prefill_token_s * new tokens + attention_pair_s * (new token, earlier token) pairs)
        + the same terms for the sequences that decode in it
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cliffwatch.config import ConfigModel

Counts = NDArray[np.int64]
Seconds = NDArray[np.float64]

# As vLLM records them by default: 1, 2, 4, then every 8 to 256, every 16 to 512.
LARGEST_GRAPH = 512


def graph_size(sequences: int) -> int | None:
    """The recorded batch size that serves so many decoding sequences; None past the largest."""
    if sequences > LARGEST_GRAPH:
        return None
    if sequences <= 4:
        return sequences if sequences < 3 else 4
    step = 8 if sequences <= 256 else 16
    return -(-sequences // step) * step


class StepTime(ConfigModel):
    """Coefficients of a step, in seconds."""

    decode_base_s: float = Field(gt=0)
    decode_sequence_s: float = Field(ge=0)
    context_token_s: float = Field(ge=0)
    repeated_token_s: float = Field(ge=0)
    prefill_floor_s: float = Field(ge=0)
    prefill_token_s: float = Field(ge=0)
    attention_pair_s: float = Field(ge=0)
    eager_launch_s: float = Field(default=0.0, ge=0)
    routed_s: float = Field(default=0.0, ge=0)
    routed_share: float = Field(default=0.0, ge=0, le=1)
    cuda_graphs: bool = True

    def seconds(
        self, *, prefill_tokens: int, pairs: float, sequences: int, context_tokens: int, repeated_tokens: int
    ) -> float:
        """Seconds of a step.

        For a fixed set of decoding sequences it is, as `context_tokens` grow, the greater of a constant and a line.

        Args:
            prefill_tokens: prompt tokens computed in it.
            pairs: for those, the sum over tokens of the tokens before each.
            sequences: sequences that get one token by decoding.
            context_tokens: tokens in the caches of those sequences.
            repeated_tokens: how many of these lie in blocks that another sequence of the batch reads too.
        """
        context_s = self.context_token_s * (context_tokens - repeated_tokens) + self.repeated_token_s * repeated_tokens
        if prefill_tokens:
            prefill_s = self.prefill_token_s * prefill_tokens + self.attention_pair_s * pairs
            return max(self.prefill_floor_s, prefill_s) + self.decode_sequence_s * sequences + context_s
        floor_s, work_s, padded_s = self._decoding(sequences)
        return max(floor_s, work_s + context_s + padded_s)

    def decode_seconds(self, sequences: int, context_tokens: Counts, repeated_tokens: Counts) -> Seconds:
        """`seconds` of many steps without prefill, each with the same sequences: an entry for each step's tokens."""
        floor_s, work_s, padded_s = self._decoding(sequences)
        context_s = self.context_token_s * (context_tokens - repeated_tokens) + self.repeated_token_s * repeated_tokens
        longest: Seconds = np.maximum(floor_s, work_s + context_s + padded_s)
        return longest

    def _decoding(self, sequences: int) -> tuple[float, float, float]:
        """(the least that it takes, work whatever the context, what the batch costs by its padded size), in seconds."""
        base_s = self.decode_base_s + self.routed_s * (1 - (1 - self.routed_share) ** sequences)
        work_s = max(base_s, self.prefill_token_s * sequences)
        size = graph_size(sequences) if self.cuda_graphs else None
        if size is None:
            return self.eager_launch_s, work_s, self.decode_sequence_s * sequences
        return 0.0, work_s, self.decode_sequence_s * size
