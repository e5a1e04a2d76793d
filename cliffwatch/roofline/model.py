"""What language models are made of: one data file each, with its source; what they hold and what a token costs.

All counts are of one whole model, in parameters, cache elements or floating-point operations (a multiplication and an
addition are two).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cliffwatch.config import ConfigModel
from cliffwatch.roofline.data import Named, find, load_all

Count = Annotated[int, Field(ge=1)]


class GroupedAttention(ConfigModel):
    """Attention whose query heads share `kv_heads` heads of keys and values (all of their own where they are equal)."""

    kind: Literal["grouped"]
    heads: Count
    kv_heads: Count
    head_dim: Count
    bias: bool = False

    def parameters(self, hidden: int) -> int:
        """Weights of a layer's four projections, biases of queries, keys and values with them."""
        outputs = (self.heads + 2 * self.kv_heads) * self.head_dim
        return hidden * (outputs + self.heads * self.head_dim) + (outputs if self.bias else 0)

    @property
    def cache_elements(self) -> int:
        """Numbers that a token leaves in a layer's cache."""
        return 2 * self.kv_heads * self.head_dim

    @property
    def cache_parts(self) -> int:
        """Among how many devices the cache can be divided."""
        return self.kv_heads

    @property
    def prefill_pair_flops(self) -> int:
        """Of a new token with one earlier token: the scores, and the sum of values."""
        return 4 * self.heads * self.head_dim

    @property
    def decode_pair_flops(self) -> int:
        """The same, when one token at a time is new."""
        return self.prefill_pair_flops


class LatentAttention(ConfigModel):
    """Multi-head latent attention (DeepSeek-V2): a token leaves one compressed vector and one rotary key."""

    kind: Literal["latent"]
    heads: Count
    query_rank: Count
    kv_rank: Count
    plain_dim: Count
    rotary_dim: Count
    value_dim: Count

    def parameters(self, hidden: int) -> int:
        """Weights of a layer's projections down and up, with the norms between them."""
        query = hidden * self.query_rank + self.query_rank * (1 + self.heads * (self.plain_dim + self.rotary_dim))
        down = hidden * (self.kv_rank + self.rotary_dim) + self.kv_rank
        up = self.kv_rank * self.heads * (self.plain_dim + self.value_dim)
        return query + down + up + self.heads * self.value_dim * hidden

    @property
    def cache_elements(self) -> int:
        """Numbers that a token leaves in a layer's cache."""
        return self.kv_rank + self.rotary_dim

    @property
    def cache_parts(self) -> int:
        """Every device keeps the whole latent cache."""
        return 1

    @property
    def prefill_pair_flops(self) -> int:
        """Of a new token with one earlier token, keys and values unfolded."""
        return 2 * self.heads * (self.plain_dim + self.rotary_dim + self.value_dim)

    @property
    def decode_pair_flops(self) -> int:
        """The same, when one token at a time is new: queries take in the projections, the cache is read as it is."""
        return 2 * self.heads * (2 * self.kv_rank + self.rotary_dim)


class DenseFeedForward(ConfigModel):
    """Gate, up and down projection in every layer."""

    kind: Literal["dense"]
    intermediate: Count

    def fixed_parameters(self, hidden: int, layers: int) -> int:
        """Weights that every token passes, of all layers."""
        return 3 * hidden * self.intermediate * layers

    def routed_parameters(self, hidden: int, layers: int) -> int:  # noqa: ARG002  one signature for both kinds
        """Weights of routed experts, of all layers: there are none."""
        return 0

    @property
    def routed_share(self) -> float:
        """Share of the routed experts that one token passes."""
        return 0.0


class ExpertFeedForward(ConfigModel):
    """A mixture of experts: some for every token (`shared`), `active` of `routed` chosen; the first layers dense."""

    kind: Literal["experts"]
    intermediate: Count
    dense_layers: Annotated[int, Field(ge=0)]
    expert_intermediate: Count
    routed: Count
    active: Count
    shared: Annotated[int, Field(ge=0)]

    def fixed_parameters(self, hidden: int, layers: int) -> int:
        """Weights that every token passes, of all layers: dense layers, shared experts, routers."""
        expert = 3 * hidden * self.expert_intermediate
        mixed = layers - self.dense_layers
        return self.dense_layers * 3 * hidden * self.intermediate + mixed * (
            self.shared * expert + hidden * self.routed
        )

    def routed_parameters(self, hidden: int, layers: int) -> int:
        """Weights of routed experts, of all layers."""
        return (layers - self.dense_layers) * self.routed * 3 * hidden * self.expert_intermediate

    @property
    def routed_share(self) -> float:
        """Share of the routed experts that one token passes."""
        return self.active / self.routed


class LanguageModel(Named):
    """A decoder-only transformer with separate input and output embeddings, and two norms a layer."""

    published_parameters: Count
    layers: Count
    hidden: Count
    vocabulary: Count
    context_tokens: Count
    attention: Annotated[GroupedAttention | LatentAttention, Field(discriminator="kind")]
    feed_forward: Annotated[DenseFeedForward | ExpertFeedForward, Field(discriminator="kind")]

    @property
    def head_parameters(self) -> int:
        """Weights of the output embedding, passed by tokens that are sampled from."""
        return self.vocabulary * self.hidden

    @property
    def fixed_parameters(self) -> int:
        """Weights of the layers that every token passes: attention, feed-forward without routed experts."""
        attention = self.layers * self.attention.parameters(self.hidden)
        return attention + self.feed_forward.fixed_parameters(self.hidden, self.layers)

    @property
    def routed_parameters(self) -> int:
        """Weights of the layers' routed experts."""
        return self.feed_forward.routed_parameters(self.hidden, self.layers)

    @property
    def parameters(self) -> int:
        """All weights."""
        norms = (2 * self.layers + 1) * self.hidden
        return 2 * self.head_parameters + self.fixed_parameters + self.routed_parameters + norms

    @property
    def layer_parameters_per_token(self) -> float:
        """Weights of the layers that one token passes: two operations each."""
        return self.fixed_parameters + self.routed_parameters * self.feed_forward.routed_share

    @property
    def active_parameters(self) -> int:
        """Weights that one token passes, both embeddings counted whole, as "active parameters" are published."""
        norms = (2 * self.layers + 1) * self.hidden
        return round(2 * self.head_parameters + self.layer_parameters_per_token + norms)

    def touched_parameters(self, tokens: int) -> float:
        """Weights of the layers that a step of `tokens` tokens reads: routed experts as far as some token chose them.

        Tokens choose independently, all experts alike: 1 - (1 - active / routed) ** tokens of them in expectation.
        """
        share = 1 - (1 - self.feed_forward.routed_share) ** tokens
        return self.fixed_parameters + self.routed_parameters * share


def load_model(name: str, *, field: str = "model") -> LanguageModel:
    """A model by name or alias, in any case. Raises InputError that names the known ones."""
    return find("models", LanguageModel, name, field=field)


def model_names() -> list[str]:
    """Every model that has a data file."""
    return [model.name for model in load_all("models", LanguageModel)]
