"""Shares of the hardware used, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import load_hardware
from cliffwatch.roofline.model import load_model
from cliffwatch.roofline.step import Deployment
from cliffwatch.surface.measured import MeasuredCells
from cliffwatch.surface.use import PARTS, UsedCell, laid, use

ON = Deployment(hardware=load_hardware("h200"), model=load_model("llama-3-8b"))
# Llama-3-8B: 32 layers of 4096 x (4096 q + 2 x 1024 kv + 4096 o) + 3 x 4096 x 14336 weights; a head of 128256 x 4096.
LAYERS = 32 * (4096 * 10240 + 3 * 4096 * 14336)
HEAD = 128_256 * 4096
TOKEN_BYTES = 32 * 2 * 8 * 128 * 2  # keys and values of 8 heads in two bytes


def cells(metric: str, *values_s: list[float], outputs: float = 64, cache: str = "none") -> MeasuredCells:
    """Cells of 2,048 tokens, at batches 1, 2, ..."""
    count = len(values_s)
    lengths, batches = np.full(count, 2048.0), np.arange(1.0, count + 1)
    return MeasuredCells(metric, cache, lengths, batches, np.full(count, outputs), tuple(map(np.array, values_s)))


def test_a_prefill_by_hand() -> None:
    """2 operations a weight and token, the head once, 4 x 4096 a layer for each pair of tokens; in 60 ms."""
    (one,) = use(ON, cells("ttft_s", [0.06]), "prefill")
    flops = 2 * LAYERS * 2048 + 2 * HEAD + 32 * 4 * 4096 * 2048 * 2048 / 2
    assert one.arithmetic is not None and one.bandwidth is not None
    assert one.arithmetic.value == pytest.approx(flops / 0.06 / 989.4e12)
    assert 0.5 < one.arithmetic.value < 0.6
    assert one.bandwidth.value == pytest.approx((2 * (LAYERS + HEAD) + 2048 * TOKEN_BYTES) / 0.06 / 4.8e12)
    assert (one.n, one.arithmetic.low, one.arithmetic.high) == (1, None, None)


def test_a_decode_step_reads_weights_once_and_every_cache() -> None:
    """At batch 2 in 5 ms: in the middle of 64 tokens each sequence has 2,080 in its cache, and adds one."""
    used = use(ON, cells("itl_s", [0.004], [0.005]), "decode")[1]
    moved = 2 * (LAYERS + HEAD) + 2 * 2081 * TOKEN_BYTES
    assert used.batch == 2 and used.bandwidth is not None and used.arithmetic is not None
    assert used.bandwidth.value == pytest.approx(moved / 0.005 / 4.8e12)
    flops = 2 * 2 * (LAYERS + HEAD) + 32 * 4 * 4096 * 2 * 2080
    assert used.arithmetic.value == pytest.approx(flops / 0.005 / 989.4e12)


def test_a_request_is_its_prompts_and_a_step_for_each_further_token() -> None:
    parts = {name: use(ON, cells(PARTS[name].metric, [1.0]), name)[0].bandwidth for name in PARTS}
    prefill, decode, request = (parts[name] for name in ("prefill", "decode", "request"))
    assert prefill is not None and decode is not None and request is not None
    assert request.value == pytest.approx(prefill.value + 63 * decode.value)


def test_intervals_are_those_of_the_latencies() -> None:
    """Repeats a factor e^0.1 and e^-0.1 about 60 ms: spread 0.1 sqrt(2); one degree of freedom: t = 12.706, n 2."""
    (one,) = use(ON, cells("ttft_s", [0.06 * np.exp(0.1), 0.06 * np.exp(-0.1)]), "prefill")
    share = one.arithmetic
    assert share is not None and share.low is not None and share.high is not None
    assert np.log(share.high / share.value) == pytest.approx(12.706 * 0.1, rel=1e-3)
    assert share.value / share.low == pytest.approx(share.high / share.value)


def test_what_is_not_known_is_none_or_refused() -> None:
    (one,) = use(ON, cells("itl_s", [0.005], outputs=np.nan), "decode")
    assert (one.arithmetic, one.bandwidth) == (None, None)
    with pytest.raises(InputError, match="how many of its tokens were cached is not known; got 'prefix'"):
        use(ON, cells("ttft_s", [0.06], cache="prefix"), "prefill")
    (one,) = use(ON, cells("itl_s", [0.005], cache="prefix"), "decode")
    assert one.bandwidth is not None
    with pytest.raises(InputError, match="unknown part"):
        use(ON, cells("ttft_s", [0.06]), "idle")
    with pytest.raises(InputError, match="no matrix units"):
        use(ON.model_copy(update={"weights": "fp8", "hardware": load_hardware("A10")}), cells("ttft_s", [1]), "prefill")


def test_cells_are_laid_by_length_and_batch() -> None:
    sweep = [UsedCell(1024.0, 1, 2, None, None), UsedCell(2048.0, 2, 3, None, None)]
    table = laid(sweep)
    assert (table.rows, table.batches) == (("1k", "2k"), (1, 2))
    assert table.cells == ((sweep[0], None), (None, sweep[1]))


def test_lengths_of_traffic_share_a_row_a_quarter_octave() -> None:
    """1,030 and 1,010 lie about 1,024; 1,200 about 1,024 x 2 ^ (1/4) = 1,218."""
    traffic = [UsedCell(tokens, batch, 5, None, None) for tokens, batch in ((1030.0, 1), (1010.0, 2), (1200.0, 2))]
    table = laid(traffic)
    assert table.rows == ("~1k", "~1218")
    assert table.cells == ((traffic[0], traffic[1]), (None, traffic[2]))
