"""The engine in real time: drives the core by a scaled clock, hands tokens to their answers, and counts what it did.

Times in the metrics are those the client lived through, in real seconds at the speed served.
"""

from __future__ import annotations

import asyncio
import time

from services.engine.answering import Answer, Choice
from services.engine.clock import ScaledClock, Timer
from services.engine.core import Core
from services.engine.metrics import Metrics
from services.engine.scheduler import Scheduler, Sequence, Step

CATCH_UP_S = 0.01  # a delay of the machine up to this is made up for; what is beyond stays a delay


class Engine:
    """Sequences in, tokens out.

    Args:
        scheduler: queue, batch and cache.
        core: the same in simulated time.
        clock: simulated against real time.
        metrics: where the work is counted.
    """

    def __init__(self, scheduler: Scheduler, core: Core, clock: ScaledClock, metrics: Metrics) -> None:
        self.scheduler = scheduler
        self.metrics = metrics
        self._core = core
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer = Timer(self._loop, self._tick)
        self._armed_s: float | None = None
        self._counters = _Counters(metrics)

    def submit(self, answer: Answer) -> None:
        """Hand an answer's sequences to the engine; their tokens come to it.

        Simulated time starts when the request was received: reading it took real time, which the profile's own share
        for reading stands for.
        """
        sequences = [choice.sequence for choice in answer.choices]
        ready = self._core.submit(sequences, self._clock.simulated_s(answer.received_s))
        for choice, ready_s in zip(answer.choices, ready, strict=True):
            choice.queued_s = self._clock.real_s(ready_s)
        self._arm()

    def cancel(self, answer: Answer) -> None:
        """The client is gone: take its sequences out."""
        answer.cancelled = True
        for choice in answer.choices:
            self.scheduler.cancel(choice.sequence)

    def update_gauges(self) -> None:
        """Bring the gauges up to now, before a scrape."""
        value = self.metrics.value
        waiting = len(self.scheduler.waiting)
        value("vllm:num_requests_running").value = self.scheduler.running
        value("vllm:num_requests_waiting").value = waiting
        value("vllm:num_requests_waiting_by_reason", "capacity").value = waiting
        value("vllm:kv_cache_usage_perc").value = self.scheduler.kv.usage

    def close(self) -> None:
        """Stop the clock."""
        self._timer.close()

    def _arm(self) -> None:
        due_s = self._core.next_event_s()
        if due_s == self._armed_s or due_s is None:
            return
        self._armed_s = due_s
        deadline_s = self._clock.real_s(due_s)
        if deadline_s <= time.monotonic():
            self._loop.call_soon(self._tick)  # sockets get their turn between two steps that are both due
        else:
            self._timer.at(deadline_s)

    def _tick(self) -> None:
        self._armed_s = None
        try:
            turn = self._core.advance(self._clock.simulated_s(time.monotonic()))
            now_s = time.monotonic()
            if turn.emitted:
                self._deliver(turn.emitted, now_s)
            if turn.started is not None:
                self._counters.started(turn.started, now_s)
        finally:
            self._arm()  # whatever happened to one answer, the engine goes on

    def _deliver(self, emitted: list[Sequence], now_s: float) -> None:
        dirty: list[Answer] = []
        gaps: dict[float, int] = {}
        first_tokens = prefilled_tokens = 0
        for sequence in emitted:
            choice: Choice = sequence.tag
            answer = choice.answer
            if answer.cancelled:
                continue
            if choice.first_s:
                gap_s = now_s - choice.last_s
                gaps[gap_s] = gaps.get(gap_s, 0) + 1
            else:
                choice.first_s = now_s
                first_tokens += 1
                prefilled_tokens += sequence.prompt_tokens
                self._counters.first_token(choice)
            choice.last_s = now_s
            if answer.token(choice):
                self._counters.finished(choice)
            if not answer.dirty:
                answer.dirty = True
                dirty.append(answer)
        self._counters.delivered(first_tokens, prefilled_tokens, gaps)
        for answer in dirty:
            answer.flush()


class _Counters:
    """The engine's metric families, looked up once."""

    def __init__(self, metrics: Metrics) -> None:
        value, histogram = metrics.value, metrics.histogram
        self.metrics = metrics
        self.queries = value("vllm:prefix_cache_queries")
        self.hits = value("vllm:prefix_cache_hits")
        self.preemptions = value("vllm:num_preemptions")
        self.prompt = value("vllm:prompt_tokens")
        self.prompt_computed = value("vllm:prompt_tokens_by_source", "local_compute")
        self.prompt_cached_source = value("vllm:prompt_tokens_by_source", "local_cache_hit")
        self.prompt_cached = value("vllm:prompt_tokens_cached")
        self.prompt_cached_device = value("vllm:prompt_tokens_cached_by_source", "device")
        self.generation = value("vllm:generation_tokens")
        self.iteration = histogram("vllm:iteration_tokens_total")
        self.ttft = histogram("vllm:time_to_first_token_seconds")
        self.itl = histogram("vllm:inter_token_latency_seconds")

    def started(self, step: Step, now_s: float) -> None:
        """Count a step's admissions and preemptions."""
        for sequence in step.admitted:
            choice: Choice = sequence.tag
            if not choice.scheduled_s:
                choice.scheduled_s = max(now_s, choice.queued_s)
                self.queries.add(sequence.prompt_tokens)
                self.hits.add(sequence.cached_tokens)
        self.preemptions.add(len(step.preempted))

    def first_token(self, choice: Choice) -> None:
        """Count a finished prefill."""
        sequence = choice.sequence
        cached = sequence.cached_tokens
        self.ttft.observe(choice.first_s - choice.answer.received_s)
        self.prompt.add(sequence.prompt_tokens)
        self.prompt_computed.add(sequence.prompt_tokens - cached)
        self.prompt_cached_source.add(cached)
        self.prompt_cached.add(cached)
        self.prompt_cached_device.add(cached)

    def delivered(self, first_tokens: int, prefilled_tokens: int, gaps: dict[float, int]) -> None:
        """Count a step's tokens; sequences that moved together share one gap."""
        tokens = first_tokens + sum(gaps.values())
        for gap_s, times in gaps.items():
            self.itl.observe(gap_s, times)
        self.generation.add(tokens)
        self.iteration.observe(tokens + prefilled_tokens)

    def finished(self, choice: Choice) -> None:
        """Count a finished request; one answer of several counts by itself, as in vLLM."""
        histogram = self.metrics.histogram
        sequence = choice.sequence
        tokens = choice.sent
        job = choice.answer.job
        decode_s = choice.last_s - choice.first_s
        self.metrics.value("vllm:request_success", choice.ending.reason).add()
        histogram("vllm:e2e_request_latency_seconds").observe(choice.last_s - choice.answer.received_s)
        histogram("vllm:request_queue_time_seconds").observe(choice.scheduled_s - choice.queued_s)
        histogram("vllm:request_prefill_time_seconds").observe(choice.first_s - choice.scheduled_s)
        histogram("vllm:request_decode_time_seconds").observe(decode_s)
        histogram("vllm:request_inference_time_seconds").observe(choice.last_s - choice.scheduled_s)
        histogram("vllm:request_time_per_output_token_seconds").observe(decode_s / (tokens - 1) if tokens > 1 else 0.0)
        histogram("vllm:request_num_preemptions").observe(sequence.preemptions)
        histogram("vllm:request_prompt_tokens").observe(sequence.prompt_tokens)
        histogram("vllm:request_generation_tokens").observe(tokens)
        histogram("vllm:request_max_num_generation_tokens").observe(tokens)
        histogram("vllm:request_prefill_kv_computed_tokens").observe(sequence.prompt_tokens - sequence.cached_tokens)
        histogram("vllm:request_params_n").observe(job.choices_per_prompt)
        if job.max_tokens is not None:
            histogram("vllm:request_params_max_tokens").observe(job.max_tokens)
