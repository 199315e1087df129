"""A server whose files another process changes answers on, takes nothing into nothing, and says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort

from .harmed_files import FAULTS, TOPIC, harm, passed_over, pulled
from .live_server import LiveServer, Wire, send_fields

pytestmark = pytest.mark.slow
SEEDS = range(effort("RMQFAST_HARMS", 2, 20))


@pytest.mark.parametrize("flush", [pytest.param("ASYNC_FLUSH", marks=pytest.mark.long), "SYNC_FLUSH"])
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_acknowledged_into_nothing_nor_passed_over_in_silence(
    fault: str, flush: str, tmp_path: Path
) -> None:
    for seed in SEEDS:
        outcome = harm(tmp_path / str(seed), fault, seed, {"flushDiskType": flush})
        found = (outcome.crashes, outcome.lost, outcome.silent, outcome.untold)
        assert found == ([], [], [], []), outcome


@pytest.mark.parametrize("is_checked", [False, True])
def test_a_changed_body_is_given_unless_the_crc_is_asked_for(is_checked: bool, tmp_path: Path) -> None:
    config = {"checkCRCOnDelivery": str(is_checked).lower()}
    with LiveServer(tmp_path / "server", config) as server, Wire(server.broker) as wire:
        for letter in b"abc":
            assert wire.ask(310, send_fields(TOPIC, 0), bytes([letter]) * 100)[0]["code"] == 0
        path = server.store / "commitlog" / ("0" * 20)
        with path.open("r+b") as file:
            file.seek(path.read_bytes().index(b"b" * 100))
            file.write(b"x")
        bodies, highest = pulled(wire, 0)
        assert [body[-1:] for body in bodies] == ([b"a", b"c"] if is_checked else [b"a", b"b", b"c"])
        assert (highest, passed_over(wire)) == (3, int(is_checked))
