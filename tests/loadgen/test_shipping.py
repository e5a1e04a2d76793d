"""A finished shard on its way to the run's folder, over a link that loses, repeats and delays."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.errors import RunError
from cliffwatch.records.files import final_path, shards_dir
from loadgen import messages, shipping
from loadgen.resuming import forget
from loadgen.shipping import PIECE_BYTES, Shipper, receive


def ship(source, run_dir, link) -> list[int]:
    """Ship a file over `link`, which is given each piece and may drop it or its answer; sizes of the pieces sent."""
    sizes: list[int] = []

    def send(piece):
        sizes.append(len(piece.data))
        arrived = link(messages.read(messages.plain(piece), messages.Piece))
        if arrived is not None:
            shipper.on_arrived(messages.read(messages.plain(arrived), messages.Arrived))

    shipper = Shipper(source, "run", 3, send)
    shipper.ship()
    return sizes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shipping, "ANSWER_WITHIN_S", 0.001)
    shards_dir(tmp_path).mkdir()
    return tmp_path


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 3 * PIECE_BYTES + 17])
def test_a_shard_arrives_whole_in_bounded_pieces(folder, size):
    data = random.Random(size).randbytes(size)
    (folder / "source").write_bytes(data)
    sizes = ship(folder / "source", folder, lambda piece: receive(folder, piece))
    assert final_path(folder, 3).read_bytes() == data
    assert max(sizes) <= PIECE_BYTES and len(sizes) == max(1, -(-size // PIECE_BYTES))
    assert [path.name for path in shards_dir(folder).iterdir()] == ["worker-003.parquet"]


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_lost_repeated_and_stale_pieces_change_nothing(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("run")
    shards_dir(folder).mkdir()
    content = random.Random(1).randbytes(2 * PIECE_BYTES + 5)
    (folder / "source").write_bytes(content)
    earlier: list[messages.Piece] = []

    def link(piece):
        earlier.append(piece)
        fate = data.draw(st.sampled_from(["ok", "ok", "ok", "lost", "unanswered", "twice", "stale"]))
        if fate == "lost":
            return None
        if fate == "stale":
            receive(folder, earlier[0])
        arrived = receive(folder, piece)
        if fate == "twice":
            arrived = receive(folder, piece)
        return None if fate == "unanswered" else arrived

    shipping.ANSWER_WITHIN_S, was, attempts = 0.001, shipping.ANSWER_WITHIN_S, shipping._ATTEMPTS
    shipping._ATTEMPTS = 1000
    try:
        ship(folder / "source", folder, link)
    finally:
        shipping.ANSWER_WITHIN_S, shipping._ATTEMPTS = was, attempts
    assert final_path(folder, 3).read_bytes() == content


def test_a_master_that_does_not_answer_is_given_up(folder):
    (folder / "source").write_bytes(b"rows")
    with pytest.raises(RunError, match="was not taken by the master: 0 of 4 bytes were"):
        ship(folder / "source", folder, lambda _: None)
    assert (folder / "source").read_bytes() == b"rows"


def test_what_is_no_piece_is_not_written_and_what_arrives_damaged_comes_again(folder):
    whole = messages.Piece(run_id="run", shard=3, offset=0, total=4, sha256="0" * 64, data=b"rows")
    assert receive(folder, whole) == messages.Arrived(run_id="run", shard=3, bytes=0)
    for change in ({"offset": -1}, {"offset": 9}, {"data": b"x" * (PIECE_BYTES + 1)}):
        piece = messages.Piece(**{name: getattr(whole, name) for name in whole.__struct_fields__} | change)
        assert receive(folder, piece) is None
    assert list(shards_dir(folder).iterdir()) == []


def test_what_had_arrived_of_a_shard_whose_worker_died_is_not_left_in_a_closed_run(folder):
    whole = final_path(folder, 1)
    whole.write_bytes(b"rows")
    receive(folder, messages.Piece(run_id="run", shard=2, offset=0, total=9, sha256="", data=b"ro"))
    assert len(list(shards_dir(folder).iterdir())) == 2
    forget(folder)
    assert list(shards_dir(folder).iterdir()) == [whole]
