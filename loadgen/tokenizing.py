"""How long a prompt is for the target: asked of its /tokenize, else of a tokenizer file, else estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.records.schema import Outcome
from cliffwatch.stream import DIALECTS, StreamResult
from cliffwatch.stream.openai_chat import OpenAIChat
from cliffwatch.workload.lexicon import Lexicon, TokenCounter
from cliffwatch.workload.lexicons import (
    assumed_lexicon,
    build_lexicon,
    calibrated,
    estimated_lexicon,
    probe_prompts,
    tokenizer_counter,
)
from cliffwatch.workload.spec import AUTO, CHAT, Workload
from loadgen.counting import server_counters, works
from loadgen.probe import Probe
from loadgen.target import Target

Learned = tuple[Lexicon, tuple[str, ...]]
_CHAT = OpenAIChat()
_SAMPLING = {"temperature": 0}
_NOT_READY = {Outcome.HTTP_5XX, Outcome.HTTP_429}


def learn_lexicons(
    probe: Probe, target: Target, workload: Workload, tokenizer: Path | None
) -> tuple[dict[str, Lexicon], tuple[str, ...]]:
    """The lexicon of each model, one for all of a family, and notes for the run's record. See `learn_lexicon`."""
    families = target.families or {}
    learned: dict[str, Learned] = {}
    for model in target.limits:
        family = families.get(model, model)
        if family not in learned:
            learned[family] = learn_lexicon(probe, model, workload, tokenizer)
    notes = dict.fromkeys(note for _, some in learned.values() for note in some)
    return {model: learned[families.get(model, model)][0] for model in target.limits}, tuple(notes)


def learn_lexicon(probe: Probe, model: str, workload: Workload, tokenizer: Path | None) -> Learned:
    """The best lexicon this target allows, and notes for the run's record.

    A tokenizer file that is given is used before the server is asked. Calibrating sends a few requests of one token.

    Raises:
        InputError: the tokenizer file is none, or is not the server's; or lengths cannot be learned in any way.
        UnreachableError: the server stopped answering.
    """
    lexicon, notes = _of_prompts(probe, model, workload, tokenizer)
    if workload.sessions is None:
        return lexicon, notes
    return _with_turns(probe, model, lexicon), notes


def endpoints(workload: Workload) -> tuple[str, ...]:
    """The endpoints a workload sends to."""
    if workload.endpoint != AUTO:
        return (workload.endpoint,)
    sizes = workload.batch.sizes
    return ((CHAT,) if 1 in sizes else ()) + (("completions",) if sizes != (1,) else ())


def _of_prompts(probe: Probe, model: str, workload: Workload, tokenizer: Path | None) -> Learned:
    used = endpoints(workload)
    if tokenizer is not None:
        return _by_file(probe, model, used, tokenizer)
    why = "the server has no /tokenize"
    for counters in server_counters(probe, model):
        if works(counters.text):
            try:
                chat = counters.chat if counters.chat is not None and works(counters.chat) else None
                lexicon = build_lexicon(counters.text, "server_tokenize", chat_counter=chat)
            except InputError as error:
                why = str(error)
                break
            if chat is None and CHAT in used:
                lexicon = calibrated(lexicon, CHAT, _pairs(probe, model, lexicon, CHAT, counters.text))
            return lexicon, ()
    if not all(DIALECTS[endpoint].counts for endpoint in used):
        note = "prompt lengths are estimated at a token a common word (the server counts no tokens)"
        return assumed_lexicon(), (f"{note}; --tokenizer FILE makes them exact",)
    lexicon = _by_estimate(probe, model, used)
    return lexicon, (f"prompt lengths are estimated ({why}); --tokenizer FILE makes them exact",)


def _by_file(probe: Probe, model: str, used: tuple[str, ...], tokenizer: Path) -> Learned:
    counter = tokenizer_counter(tokenizer)
    plain = lexicon = build_lexicon(counter, "tokenizer_file")
    if not all(DIALECTS[endpoint].counts for endpoint in used):
        return lexicon, ("prompt lengths are the tokenizer file's: the server counts no tokens to check them against",)
    for endpoint in used:
        lexicon = calibrated(lexicon, endpoint, _pairs(probe, model, plain, endpoint, counter))
    return lexicon, ("before the load, requests of one token measured what the server adds to a prompt",)


def _pairs(probe: Probe, model: str, lexicon: Lexicon, endpoint: str, counter: TokenCounter) -> list[tuple[int, int]]:
    """(tokens as the lexicon has them, tokens as the server counts them) of the probe prompts."""
    texts = [text for _, text in probe_prompts()]
    shift = lexicon.overhead(endpoint) - lexicon.special_tokens
    return [
        (built + shift, _prompt_tokens(probe, model, endpoint, [text]))
        for text, built in zip(texts, counter.count(texts), strict=True)
    ]


def _by_estimate(probe: Probe, model: str, used: tuple[str, ...]) -> Lexicon:
    counted = {
        endpoint: [(words, _prompt_tokens(probe, model, endpoint, [text])) for words, text in probe_prompts()]
        for endpoint in used
    }
    plain = next((pairs for endpoint, pairs in counted.items() if endpoint != CHAT), counted.get(CHAT, []))
    try:
        return estimated_lexicon(plain, counted.get(CHAT, ()))
    except InputError as error:
        url = probe.origin.url(DIALECTS[used[0]].path)
        allowed = "usage.prompt_tokens that counts, or --tokenizer FILE"
        raise InputError(f"lengths cannot be estimated: {error}", file=url, allowed=allowed) from error


def _with_turns(probe: Probe, model: str, lexicon: Lexicon) -> Lexicon:
    """The lexicon with what a turn after the first gains: the templates around an answer and around a message.

    One exchange more of the same text adds the text twice, and that.
    """
    _, text = probe_prompts()[0]
    said = ([text], [text, text, text])
    for counters in server_counters(probe, model):
        if counters.turns is not None and works(counters.text):
            once, thrice = (counters.turns(turns) for turns in said)
            if once is not None and thrice is not None:
                break
    else:
        once, thrice = (_prompt_tokens(probe, model, CHAT, turns) for turns in said)
    return replace(lexicon, turn_tokens=max(0, thrice - once - 2 * (once - lexicon.chat_tokens)))


def _prompt_tokens(probe: Probe, model: str, endpoint: str, said: Sequence[str]) -> int:
    """How many prompt tokens the server says a real request had; `said` is one prompt, or the turns of a chat."""
    dialect = DIALECTS[endpoint]
    if endpoint == CHAT:
        body = _CHAT.encode_turn(model=model, said=said, max_tokens=1, sampling=_SAMPLING)
    else:
        body = dialect.encode(model=model, prompts=said, max_tokens=1, sampling=_SAMPLING)
    result = probe.generate(dialect, dialect.path, body)
    if result.server_input_tokens is None:
        raise _refused(probe.origin.url(dialect.path), result)
    return result.server_input_tokens


def _refused(url: str, result: StreamResult) -> InputError | UnreachableError:
    if result.outcome in _NOT_READY:
        return UnreachableError(f"refuses a request of one token: {result.error}", file=url)
    if result.outcome is Outcome.HTTP_4XX:
        return InputError(f"refuses a request of one token: {result.error}", file=url)
    if result.outcome is Outcome.PROTOCOL:
        allowed = "the address of an inference server as --target"
        return InputError(f"does not answer as an inference server: {result.error}", file=url, allowed=allowed)
    why = "" if result.outcome in {Outcome.OK, Outcome.EMPTY} else f" ({result.error})"
    allowed = "--tokenizer FILE for a server that tells neither"
    return InputError(f"says nothing of prompt tokens{why}", file=url, allowed=allowed)
