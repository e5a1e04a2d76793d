"""Request bodies of the OpenAI API as vLLM takes them: parsed, checked, and turned into prompts of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from services.engine import faults
from services.engine.faults import RequestFault
from services.engine.tokenizer import MAX_TOKEN_CHARACTERS, VOCABULARY, Token, chat_prompt, completion_prompt

MAX_PROMPTS = 1024
MAX_CHOICES = 1024
MAX_STOPS = 64
DEFAULT_COMPLETION_TOKENS = 16

Body = TypeVar("Body", bound=msgspec.Struct)


class StreamOptions(msgspec.Struct):
    """What a stream says besides its text."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class TextPart(msgspec.Struct):
    """One part of a message's content."""

    type: str
    text: str | None = None


class Message(msgspec.Struct):
    """One turn of a chat."""

    role: str
    content: str | list[TextPart] | None = None


class _Common(msgspec.Struct, kw_only=True):
    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    n: int | None = 1
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    seed: int | None = None
    priority: int = 0
    stop: str | list[str] | None = None
    ignore_eos: bool = False
    temperature: float | None = None
    top_p: float | None = None
    response_format: Any = None
    prompt_logprobs: int | None = None
    use_beam_search: bool = False


class CompletionBody(_Common, kw_only=True):
    """Body of `/v1/completions`; other keys are ignored, as vLLM ignores what it does not know."""

    prompt: str | list[str | int | list[int]] | None = None
    echo: bool | None = False
    logprobs: int | None = None
    suffix: str | None = None
    add_special_tokens: bool = True


class ChatBody(_Common, kw_only=True):
    """Body of `/v1/chat/completions`."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    tool_choice: Any = None
    add_generation_prompt: bool = True


class TokenizeBody(msgspec.Struct, kw_only=True):
    """Body of `/tokenize`: a prompt, or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None
    add_special_tokens: bool = True
    add_generation_prompt: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """A checked request: every prompt gets `choices_per_prompt` answers."""

    chat: bool
    prompts: list[list[Token]]
    choices_per_prompt: int
    max_tokens: int | None  # None: the answer ends by itself
    min_tokens: int
    ignore_eos: bool
    stops: tuple[str, ...]
    seed: int
    priority: int
    stream: bool
    include_usage: bool
    continuous_usage: bool


def parse(data: bytes, body: type[Body]) -> Body:
    """Decode JSON into `body`. Raises RequestFault (400)."""
    try:
        return msgspec.json.decode(data, type=body, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise faults.invalid_body(error) from error


def completion_job(body: CompletionBody, max_model_len: int) -> Job:
    """Check a completions request against itself and the model's length. Raises RequestFault."""
    for name in ("echo", "suffix"):
        if getattr(body, name):
            raise faults.unsupported(name)
    if body.logprobs is not None:
        raise faults.unsupported("logprobs")
    max_tokens = DEFAULT_COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens
    prompts = _prompts(body.prompt, max_model_len, special=body.add_special_tokens)
    return _job(body, max_model_len, chat=False, prompts=prompts, max_tokens=max_tokens)


def chat_job(body: ChatBody, max_model_len: int) -> Job:
    """Check a chat request against itself and the model's length. Raises RequestFault."""
    if body.logprobs:
        raise faults.unsupported("logprobs")
    if body.tool_choice not in (None, "none", "auto"):
        raise faults.unsupported("tool_choice")
    limit = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    messages = message_texts(body.messages)
    _check_characters(sum(len(text) for _, text in messages), max_model_len)
    prompt = chat_prompt(messages, open_answer=body.add_generation_prompt)
    return _job(body, max_model_len, chat=True, prompts=[prompt], max_tokens=limit)


def message_texts(messages: list[Message]) -> list[tuple[str, str]]:
    """(role, text) of each message. Raises RequestFault on parts that are not text."""
    texts = []
    for index, message in enumerate(messages):
        content = message.content
        if isinstance(content, list):
            if any(part.type != "text" or part.text is None for part in content):
                raise faults.unsupported(f"messages[{index}].content of other types than text")
            content = "\n".join(part.text or "" for part in content)
        texts.append((message.role, content or ""))
    return texts


def _job(body: _Common, max_model_len: int, *, chat: bool, prompts: list[list[Token]], max_tokens: int | None) -> Job:
    _check_ranges(body, max_tokens)
    for prompt in prompts:
        if len(prompt) + (max_tokens or 1) > max_model_len:
            raise faults.too_long(len(prompt), max_tokens, max_model_len)
    choices = 1 if body.n is None else body.n
    if choices * len(prompts) > MAX_CHOICES:
        raise faults.bad_value("n", f"times the number of prompts must be at most {MAX_CHOICES}", choices)
    options = body.stream_options
    if options is not None and not body.stream:
        raise RequestFault(400, "Stream options can only be defined when `stream=True`.", kind="BadRequestError")
    stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    if len(stops) > MAX_STOPS:
        raise faults.bad_value("stop", f"must hold at most {MAX_STOPS} strings", len(stops))
    include_usage = options is not None and bool(options.include_usage)
    return Job(
        chat=chat,
        prompts=prompts,
        choices_per_prompt=choices,
        max_tokens=max_tokens,
        min_tokens=body.min_tokens,
        ignore_eos=body.ignore_eos,
        stops=tuple(stop for stop in stops if stop),
        seed=body.seed or 0,
        priority=body.priority,
        stream=bool(body.stream),
        include_usage=include_usage,
        continuous_usage=include_usage and options is not None and bool(options.continuous_usage_stats),
    )


def _check_ranges(body: _Common, max_tokens: int | None) -> None:
    if max_tokens is not None and max_tokens < 1:
        raise faults.bad_value("max_tokens", "must be at least 1", max_tokens)
    if body.min_tokens < 0 or (max_tokens is not None and body.min_tokens > max_tokens):
        raise faults.bad_value("min_tokens", "must be at least 0 and at most max_tokens", body.min_tokens)
    if body.n is not None and body.n < 1:
        raise faults.bad_value("n", "must be at least 1", body.n)
    if body.temperature is not None and not 0 <= body.temperature < float("inf"):
        raise faults.bad_value("temperature", "must be non-negative", body.temperature)
    if body.top_p is not None and not 0 < body.top_p <= 1:
        raise faults.bad_value("top_p", "must be in (0, 1]", body.top_p)
    if body.use_beam_search:
        raise faults.unsupported("use_beam_search")
    if body.prompt_logprobs is not None:
        raise faults.unsupported("prompt_logprobs")
    kind = body.response_format.get("type") if isinstance(body.response_format, dict) else body.response_format
    if kind not in (None, "text"):
        raise faults.unsupported("response_format")


def _prompts(
    prompt: str | list[str | int | list[int]] | None, max_model_len: int, *, special: bool
) -> list[list[Token]]:
    if prompt is None or prompt == []:
        message = "Either prompt or prompt_embeds must be provided and non-empty."
        raise RequestFault(400, message, kind="BadRequestError", param="prompt")
    if isinstance(prompt, str):
        prompt = [prompt]
    if all(isinstance(part, int) for part in prompt):
        return [_checked_ids(prompt)]
    if len(prompt) > MAX_PROMPTS:
        raise faults.bad_value("prompt", f"must hold at most {MAX_PROMPTS} prompts", len(prompt))
    prompts: list[list[Token]] = []
    for part in prompt:
        if isinstance(part, str):
            _check_characters(len(part), max_model_len)
            prompts.append(completion_prompt(part, special=special))
        elif isinstance(part, list):
            prompts.append(_checked_ids(part))
        else:
            raise RequestFault(
                400, "prompt mixes token ids with texts or lists.", kind="BadRequestError", param="prompt"
            )
    return prompts


def _check_characters(characters: int, max_model_len: int) -> None:
    """Refuse a text that is too long however it is cut into tokens, before the work of cutting it."""
    least = -(-characters // MAX_TOKEN_CHARACTERS)
    if least > max_model_len:
        raise faults.too_long(least, None, max_model_len)


def _checked_ids(ids: list[Any]) -> list[Token]:
    if not ids:
        message = "The decoder prompt cannot be empty."
        raise RequestFault(400, message, kind="BadRequestError", param="prompt")
    if min(ids) < 0 or max(ids) >= VOCABULARY:
        raise RequestFault(400, f"Token id {max(ids)} is out of vocabulary", kind="BadRequestError", param="prompt")
    return ids
