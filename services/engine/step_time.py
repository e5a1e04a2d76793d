"""How long one engine step takes: a roofline of few coefficients, fitted to measurements of a real engine.

A step without prefill is bound by memory: the weights are read once, then every sequence's keys and values:

    decode_base_s + decode_sequence_s * sequences + context_token_s * context tokens

A step with prefill is bound by arithmetic, but never shorter than launching its kernels:

    max(prefill_floor_s, prefill_token_s * new tokens + attention_pair_s * (new token, earlier token) pairs)
        + the same two terms for the sequences that decode in it
"""

from __future__ import annotations

from pydantic import Field

from cliffwatch.config import ConfigModel


class StepTime(ConfigModel):
    """Coefficients of a step, in seconds."""

    decode_base_s: float = Field(gt=0)
    decode_sequence_s: float = Field(ge=0)
    context_token_s: float = Field(ge=0)
    prefill_floor_s: float = Field(ge=0)
    prefill_token_s: float = Field(ge=0)
    attention_pair_s: float = Field(ge=0)

    def seconds(self, *, prefill_tokens: int, pairs: float, sequences: int, context_tokens: int) -> float:
        """Seconds of a step.

        Args:
            prefill_tokens: prompt tokens computed in it.
            pairs: for those, the sum over tokens of the tokens before each.
            sequences: sequences that get one token by decoding.
            context_tokens: tokens in the caches of those sequences.
        """
        decode_s = self.decode_sequence_s * sequences + self.context_token_s * context_tokens
        if not prefill_tokens:
            return self.decode_base_s + decode_s
        prefill_s = self.prefill_token_s * prefill_tokens + self.attention_pair_s * pairs
        return max(self.prefill_floor_s, prefill_s) + decode_s
