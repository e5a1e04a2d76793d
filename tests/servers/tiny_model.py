"""Makes a tiny Llama with random weights, for llama.cpp (one GGUF file) and for vLLM (a Hugging Face folder).

    python -m tests.servers.tiny_model gguf tiny.gguf
    python -m tests.servers.tiny_model huggingface tiny --hidden 512 --layers 8

It speaks nonsense, at the pace and through the code paths of a real model; each of its tokens is visible text, so that
an answer of few tokens is never an empty one. The tokenizer is a byte-level BPE trained on the language reference that
every Python carries, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import gguf
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 2048
CONTEXT = 32768
BOS, EOS, PAD = "<s>", "</s>", "<pad>"
SPECIAL = [BOS, EOS, PAD, "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True)
class Shape:
    """Size of the model: hidden width and number of layers; the feed-forward part is twice as wide."""

    hidden: int
    layers: int
    heads: int = 4
    norm_epsilon: float = 1e-6
    rope_theta: float = 10000.0

    @property
    def feed_forward(self) -> int:
        return 2 * self.hidden


# (GGUF name, Hugging Face name, rows and columns: "h" hidden, "f" feed-forward); biases do not exist in Llama.
LAYER_WEIGHTS = (
    ("attn_q", "self_attn.q_proj", "hh"),
    ("attn_k", "self_attn.k_proj", "hh"),
    ("attn_v", "self_attn.v_proj", "hh"),
    ("attn_output", "self_attn.o_proj", "hh"),
    ("ffn_gate", "mlp.gate_proj", "fh"),
    ("ffn_up", "mlp.up_proj", "fh"),
    ("ffn_down", "mlp.down_proj", "hf"),
)
LAYER_NORMS = (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm"))


def train_tokenizer() -> Tokenizer:
    """A byte-level BPE of `VOCABULARY` entries, the special tokens first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((topics[name] for name in sorted(topics)), trainer)
    return tokenizer


def silent_tokens(tokenizer: Tokenizer) -> list[int]:
    """Tokens that are no text by themselves: special ones, and pieces of a character."""
    texts = ((token, tokenizer.decode([token])) for token in range(VOCABULARY))
    return [token for token, text in texts if not text or "\ufffd" in text]


def weights(shape: Shape, silent: list[int], seed: int = 0) -> Iterator[tuple[str, str, NDArray[np.float32]]]:
    """Every tensor as (GGUF name, Hugging Face name, values), small and random, norms at one.

    The output rows of `silent` tokens are zero: among two thousand random logits, zero is never the largest.
    """
    random = np.random.default_rng(seed)
    width = {"h": shape.hidden, "f": shape.feed_forward}

    def matrix(*size: int) -> NDArray[np.float32]:
        return random.standard_normal(size, dtype=np.float32) * np.float32(0.02)

    yield "token_embd.weight", "model.embed_tokens.weight", matrix(VOCABULARY, shape.hidden)
    yield "output_norm.weight", "model.norm.weight", np.ones(shape.hidden, np.float32)
    output = matrix(VOCABULARY, shape.hidden)
    output[silent] = 0
    yield "output.weight", "lm_head.weight", output
    for layer in range(shape.layers):
        for gguf_name, hf_name, size in LAYER_WEIGHTS:
            values = matrix(width[size[0]], width[size[1]])
            yield f"blk.{layer}.{gguf_name}.weight", f"model.layers.{layer}.{hf_name}.weight", values
        for gguf_name, hf_name in LAYER_NORMS:
            ones = np.ones(shape.hidden, np.float32)
            yield f"blk.{layer}.{gguf_name}.weight", f"model.layers.{layer}.{hf_name}.weight", ones


def write_gguf(path: Path, shape: Shape) -> None:
    """One GGUF file with 16-bit matrices and the tokenizer inside."""
    tokenizer = train_tokenizer()
    bpe = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].__getitem__)
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in bpe["merges"]]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random-llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.hidden // shape.heads)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    kind = gguf.TokenType
    writer.add_token_types([kind.CONTROL if token in SPECIAL else kind.NORMAL for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(SPECIAL.index(BOS))
    writer.add_eos_token_id(SPECIAL.index(EOS))
    writer.add_pad_token_id(SPECIAL.index(PAD))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, _, values in weights(shape, silent_tokens(tokenizer)):
        writer.add_tensor(name, values.astype(np.float16) if values.ndim == 2 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_huggingface(folder: Path, shape: Shape) -> None:
    """A folder as `transformers` and vLLM read it: config, tokenizer, weights in safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.hidden // shape.heads,
        "hidden_act": "silu",
        "rms_norm_eps": shape.norm_epsilon,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": CONTEXT,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": False,
        "bos_token_id": SPECIAL.index(BOS),
        "eos_token_id": SPECIAL.index(EOS),
        "pad_token_id": SPECIAL.index(PAD),
        "torch_dtype": "float16",
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "model_max_length": CONTEXT,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=2))
    tokenizer = train_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    tensors = {name: values.astype(np.float16) for _, name, values in weights(shape, silent_tokens(tokenizer))}
    write_safetensors(folder / "model.safetensors", tensors)


def write_safetensors(path: Path, tensors: dict[str, NDArray[np.float16]]) -> None:
    """The safetensors format: u64 header length, a JSON header of offsets, the values one after another."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, values in tensors.items():
        end = offset + values.nbytes
        header[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            stream.write(values.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=("gguf", "huggingface"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    options = parser.parse_args()
    write = {"gguf": write_gguf, "huggingface": write_huggingface}[options.format]
    write(options.path, Shape(options.hidden, options.layers))


if __name__ == "__main__":
    main()
