"""How long one engine step takes: a roofline of few coefficients, fitted to measurements of a real engine.

A step without prefill is bound by memory: the weights are read once, then every sequence's keys and values:

    decode_base_s + decode_sequence_s * sequences + context_token_s * context tokens

Where sequences of the batch share cache blocks, only the first reading of a block costs that much; the chip's own cache
serves the repeated ones at `repeated_token_s`.

A step with prefill is bound by arithmetic, but never shorter than launching its kernels:

    max(prefill_floor_s, prefill_token_s * new tokens + attention_pair_s * (new token, earlier token) pairs)
        + the same terms for the sequences that decode in it
"""

from __future__ import annotations

from pydantic import Field

from cliffwatch.config import ConfigModel


class StepTime(ConfigModel):
    """Coefficients of a step, in seconds."""

    decode_base_s: float = Field(gt=0)
    decode_sequence_s: float = Field(ge=0)
    context_token_s: float = Field(ge=0)
    repeated_token_s: float = Field(ge=0)
    prefill_floor_s: float = Field(ge=0)
    prefill_token_s: float = Field(ge=0)
    attention_pair_s: float = Field(ge=0)

    def seconds(
        self, *, prefill_tokens: int, pairs: float, sequences: int, context_tokens: int, repeated_tokens: int
    ) -> float:
        """Seconds of a step.

        Args:
            prefill_tokens: prompt tokens computed in it.
            pairs: for those, the sum over tokens of the tokens before each.
            sequences: sequences that get one token by decoding.
            context_tokens: tokens in the caches of those sequences.
            repeated_tokens: how many of these lie in blocks that another sequence of the batch reads too.
        """
        decode_s = (
            self.decode_sequence_s * sequences
            + self.context_token_s * (context_tokens - repeated_tokens)
            + self.repeated_token_s * repeated_tokens
        )
        if not prefill_tokens:
            return self.decode_base_s + decode_s
        prefill_s = self.prefill_token_s * prefill_tokens + self.attention_pair_s * pairs
        return max(self.prefill_floor_s, prefill_s) + decode_s
