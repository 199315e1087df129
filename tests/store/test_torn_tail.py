"""Logs torn in their last records: recovered to where the real 4.9.4 recovers them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from tests.effort import effort
from tests.interop.rocketmq import java

SIZES = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000, zone_offset_ms=0)
TORN = effort("RMQFAST_TORN", 75, 200)
AT_ONCE = 25


def killed(path: Path) -> list[int]:
    """A store that was not closed; where its records begin, and where the log ends."""
    store = rmqfast.open_store(path, mode="a", options=SIZES)
    places = [
        store.append(Message(f"T{n % 2}", b"%d" % n * (20 + n % 7), tags=f"t{n}", keys=f"k{n}", queue_id=n % 3))
        for n in range(100)
    ]
    del store
    log = (path / "commitlog" / ("0" * 20)).read_bytes()
    return [place.physical_offset for place in places] + [len(log.rstrip(b"\0"))]


def fills(log: bytes, cut: int) -> list[bytes]:
    """What may stand behind the cut: nothing, garbage, the bytes of older records."""
    rest = len(log) - cut
    return [bytes(rest), b"\xa7" * 300 + bytes(rest - 300), log[: min(300, rest)] + bytes(rest - 300)]


def recovered_by_rocketmq(stores: list[Path]) -> list[int]:
    flags = ["--slots", str(SIZES.index_slots), "--index-num", str(SIZES.index_entries)]
    answers = []
    for first in range(0, len(stores), AT_ONCE):
        lines = "".join(f"{store}\n" for store in stores[first : first + AT_ONCE])
        printed = java("4.9.4", "Recover", *flags, stdin=lines, seconds=100)
        answers += [json.loads(line) for line in printed.splitlines()]
    assert all(answer["loaded"] for answer in answers)
    return [answer["end"] for answer in answers]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_torn_logs_end_where_rocketmq_ends_them(tmp_path: Path) -> None:
    """200 logs with RMQFAST_FULL=1, or as RMQFAST_TORN says."""
    places = killed(tmp_path / "whole")
    log = (tmp_path / "whole" / "commitlog" / ("0" * 20)).read_bytes()
    cuts = range(places[-4], places[-1])
    torn = [log[:cut] + fill for cut in cuts for fill in fills(log, cut)]
    torn = torn[:: max(1, len(torn) // TORN)]
    for owner in ("ours", "theirs"):
        for n, content in enumerate(torn):
            shutil.copytree(tmp_path / "whole", tmp_path / owner / str(n))
            (tmp_path / owner / str(n) / "commitlog" / ("0" * 20)).write_bytes(content)
    theirs = recovered_by_rocketmq([tmp_path / "theirs" / str(n) for n in range(len(torn))])
    stricter = 0
    for n, (content, end) in enumerate(zip(torn, theirs, strict=True)):
        with rmqfast.open_store(tmp_path / "ours" / str(n), mode="a", options=SIZES) as store:
            assert store.recovery is not None
            found = store.recovery.log_end
        if found != end:  # a record whose properties were zeroed is no record here: they never end so
            assert (found, content[end - 1]) == (max(place for place in places if place < end), 0)
            stricter += 1
    assert len(torn) >= TORN
    assert stricter < len(torn) / 4
