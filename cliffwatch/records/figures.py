"""The figures of a request, each defined once, as SQL over the stored columns.

Every figure is null where it is unknown or does not apply, never 0. Definitions follow docs/timing.md. `service`
figures start when the last request byte was handed to the kernel (*sent*; of the last attempt, where there were
several), `user` figures when the request should have been sent (*intended*), so that a generator or server that falls
behind cannot hide it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cliffwatch.records.conditions import FAILED, outcome_in
from cliffwatch.records.schema import ARROW_SCHEMA, Outcome

# Outcomes of requests that were given up while they waited: what they waited is a lower bound of what it would have
# taken (right-censored), so they must count against a latency objective, not vanish from it.
CENSORED = (
    Outcome.TIMEOUT_CONNECT,
    Outcome.TIMEOUT_FIRST_TOKEN,
    Outcome.TIMEOUT_TOTAL,
    Outcome.STALLED,
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a request.

    Attributes:
        sql: expression over the columns of a row.
        unit: `s`, `tokens`, `tokens/s` or `ratio`.
        help: what it is, in a sentence.
        waited_sql: where requests given up are right-censored, how long they had waited for this figure's event.
        reached_sql: what it is at least by the tokens that came, however the request ended.
    """

    sql: str
    unit: str
    help: str
    waited_sql: str | None = None
    reached_sql: str | None = None


def _since(event: str, start: str) -> str:
    return f"({event} - {start}) / 1e9"


def _complete(expression: str) -> str:
    """The end of a stream is its last token only when it came to its end."""
    return f"CASE WHEN outcome = '{Outcome.OK.value}' THEN {expression} END"


_WAITED = _since("ended_ns", "coalesce(sent_ns, intended_ns)")
_WAITED_USER = _since("ended_ns", "intended_ns")
_E2E = _since("last_token_ns", "sent_ns")
FIRST_SENT = "CASE WHEN attempts > 1 THEN attempt_sent_ns[1] ELSE sent_ns END"
# Of a batch, output tokens are a sum over prompts: its token times are those of its mean prompt.
_TOKENS_EACH = "(output_tokens / batch)"


def _until(event: str, start: str, help_text: str, *, complete: bool = False) -> Figure:
    reached = _since(event, start)
    waited = _WAITED if start == "sent_ns" else _WAITED_USER
    return Figure(_complete(reached) if complete else reached, "s", help_text, waited, reached)


FIGURES: dict[str, Figure] = {
    "ttft_s": _until("first_token_ns", "sent_ns", "Time to first token, from sent (service)"),
    "ttft_user_s": _until("first_token_ns", "intended_ns", "Time to first token, from intended (user)"),
    "ttfa_s": _until("first_answer_ns", "sent_ns", "Time to first token that is not reasoning, from sent"),
    "ttfa_user_s": _until("first_answer_ns", "intended_ns", "Time to first token that is not reasoning, from intended"),
    "e2e_s": _until(
        "last_token_ns", "sent_ns", "Last token, from sent (service); complete streams only", complete=True
    ),
    "e2e_user_s": _until(
        "last_token_ns", "intended_ns", "Last token, from intended (user); complete streams only", complete=True
    ),
    "total_s": Figure(
        _complete(_since("last_token_ns", f"({FIRST_SENT})")),
        "s",
        "Last token, from the first attempt's send, waits between attempts included; complete streams only",
    ),
    "itl_s": Figure("itl_s", "s", "Inter-token latency: (last - first) / (tokens - 1), mean over a batch's prompts"),
    "tpot_s": Figure(
        _complete(
            "CASE WHEN output_tokens >= 2 * batch AND last_token_ns > first_token_ns"
            f" THEN {_since('last_token_ns', 'first_token_ns')} / ({_TOKENS_EACH} - 1) END"
        ),
        "s",
        "Time per output token after the first: (E2E - TTFT) / (tokens - 1); null under two tokens or chunks a prompt",
    ),
    "ntpot_s": Figure(
        _complete(f"{_E2E} / nullif({_TOKENS_EACH}, 0)"), "s", "E2E / output tokens, by the mean prompt of a batch"
    ),
    "output_rate": Figure(
        _complete(f"output_tokens / nullif({_E2E}, 0)"), "tokens/s", "Output tokens of all prompts per second of E2E"
    ),
    "max_gap_s": Figure("max_gap_us / 1e6", "s", "Longest gap between token-bearing chunks"),
    "connect_s": Figure("connect_ns / 1e9", "s", "TCP and TLS set-up, where the request opened a connection"),
    "send_lag_s": Figure(
        _since(f"({FIRST_SENT})", "intended_ns"), "s", "Sent (first attempt) minus intended, connecting included"
    ),
    "dispatch_lag_s": Figure(
        f"(({FIRST_SENT}) - intended_ns - coalesce(connect_ns, 0)) / 1e9",
        "s",
        "Sent minus intended without connecting: what the load generator itself was late",
    ),
    "waited_s": Figure(_WAITED, "s", "Until the outcome was known, from sent (from intended where never sent)"),
    "waited_user_s": Figure(_WAITED_USER, "s", "Until the outcome was known, from intended"),
    "length_error": Figure(
        "server_input_tokens / (input_tokens::BIGINT * batch) - 1",
        "ratio",
        "Prompt tokens by the server, against asked",
    ),
}


def gave_up(figure: str, threshold: str) -> str:
    """The condition: waited at least the threshold (SQL) for an event that never came.

    False where a wait says nothing about the figure.
    """
    waited = FIGURES[figure].waited_sql
    if waited is None:
        return "FALSE"
    return f"({figure} IS NULL AND {outcome_in(CENSORED)} AND coalesce({waited} >= {threshold}, FALSE))"


def late_though_failed(figure: str, threshold: str) -> str:
    """The condition: failed, but not before a token showed that the figure is over the threshold (SQL).

    False where the tokens of an answer that was cut off do not say so, as of its mean time between tokens.
    """
    reached = FIGURES[figure].reached_sql
    return "FALSE" if reached is None else f"({FAILED} AND coalesce({reached} > {threshold}, FALSE))"


def view_columns() -> str:
    """The select list of the view `requests`: the stored columns, then the figures that are not columns already."""
    stored = ARROW_SCHEMA.names
    computed = [f"{figure.sql} AS {name}" for name, figure in FIGURES.items() if name not in stored]
    return ", ".join([*stored, *computed])
