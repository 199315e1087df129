"""The ledger of pulls: what it takes from heartbeats and from the data plane, keeps in its database, and answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from rmqfast._native import DataPlane
from rmqfast.broker.ledger.database import LedgerDatabase
from rmqfast.broker.ledger.ledger import PullLedger
from rmqfast.errors import StoreIOError
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData

from .client_doubles import consumer, subscription

HOUR = 3_600_000


class Rows:
    """A data plane that has the rows which a test gives it."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.gap: int | None = None
        self.last_id: int | None = None
        self.ended: list[str] = []

    def continue_ledger(self, last_id: int) -> None:
        self.last_id = last_id

    def end_ledger_pulls(self, group: str) -> None:
        self.ended.append(group)

    def take_ledger(self, _idle_ms: int) -> tuple[list[tuple[Any, ...]], int | None]:
        rows, gap, self.rows, self.gap = self.rows, self.gap, [], None
        return rows, gap


#: A row that SQLite does not take, as where the disk is full.
UNSAVEABLE = (9, 0, "g", "t", 0, "c1", None, "A", 0, object(), 0, 0)


class Clock:
    def __init__(self) -> None:
        self.time = 1_800_000_000_000

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(root: Path, rows: Rows, clock: Clock, *, most_rows: int = 1000, hours: int = 24) -> PullLedger:
    ledger = PullLedger(root, cast("DataPlane", rows), most_rows=most_rows, hours=hours, now=clock)
    ledger.open()
    return ledger


@pytest.fixture
def ledger(tmp_path: Path, rows: Rows, clock: Clock) -> Iterator[PullLedger]:
    with closing(opened(tmp_path, rows, clock)) as running:
        yield running


def pull(number: int, start: int, stop: int, time: int, *, client: str = "c1", tags: str = "A") -> tuple[Any, ...]:
    return (number, 0, "g", "t", 0, client, None, tags, start, stop, time, time)


def stretches(ledger: PullLedger, offset: int, group: str | None = "g") -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = ledger.answer("t", 0, offset, group)["stretches"]
    return answer


def members(ledger: PullLedger) -> list[tuple[Any, ...]]:
    return [
        (each["clientId"], each["filter"], each["first"], each["last"])
        for each in ledger.answer("t", 0, 0, "g")["members"]
    ]


def data(tags: str, expression_type: str = "TAG") -> ConsumerData:
    return consumer("g", subscription("t", tags, 1, expression_type))


def test_an_offset_has_the_rows_that_cover_it(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    rows.rows = [
        pull(1, 0, 5, clock.time),
        (2, 1, "g", "t", 0, "c1", None, None, 0, 5, clock.time, clock.time),
        (3, 2, "g", "t", 0, "tool", None, None, 5, 2, clock.time, clock.time),
        (4, 0, "g", "t", 0, "c1", "SQL92", "a > 1", 2, 4, clock.time, clock.time),
        (5, 0, "g2", "t", 0, "c2", None, "*", 0, 9, clock.time, clock.time),
        (6, 0, "g", "t", 1, "c1", None, "*", 0, 9, clock.time, clock.time),
    ]
    told = stretches(ledger, 4)
    assert [(each["id"], each["kind"], each["filter"]) for each in told] == [
        (1, "PULL", "TAG:A"),
        (2, "COMMIT", None),
        (3, "RESET", None),
    ]
    assert told[2]["from"], told[2]["to"] == (5, 2)
    assert [each["id"] for each in stretches(ledger, 3)] == [1, 2, 3, 4]
    assert stretches(ledger, 3)[3]["filter"] == "SQL92:a > 1"
    assert [each["id"] for each in stretches(ledger, 8)] == []
    assert [each["group"] for each in stretches(ledger, 0, None)] == ["g", "g", "g2"]


def test_a_row_that_has_grown_replaces_its_old_self(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    rows.rows = [pull(1, 0, 5, clock.time)]
    assert stretches(ledger, 7) == []
    rows.rows = [pull(1, 0, 9, clock.time)]
    assert [each["to"] for each in stretches(ledger, 7)] == [9]


def test_a_topic_that_is_deleted_leaves_what_its_members_want(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    rows.rows = [pull(1, 0, 5, clock.time), (2, 0, "g", "u", 0, "c1", None, "A", 0, 5, clock.time, clock.time)]
    ledger.note_heartbeat("c1", data("A"))
    ledger.save()
    ledger.remove_topic("t")
    assert stretches(ledger, 1) == []
    assert len(members(ledger)) == 1
    assert len(ledger.answer("u", 0, 1, "g")["stretches"]) == 1


def test_a_filter_that_is_too_long_is_not_kept(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    rows.rows = [pull(1, 0, 5, clock.time, tags="A" * 4000), pull(2, 0, 5, clock.time, tags="A" * 4001)]
    assert [each["filter"] for each in stretches(ledger, 1)] == [f"TAG:{'A' * 4000}", None]


def test_a_member_has_what_its_heartbeats_told_and_when(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    begin = clock.time
    for tags, after in (("A", 0), ("A", 1000), ("B", 2000)):
        clock.time = begin + after
        ledger.note_heartbeat("c1", data(tags))
    ledger.note_heartbeat("c2", data("a > 1", "SQL92"))
    clock.time = begin + 3000
    ledger.note_leave("g", "c1")
    assert members(ledger) == [
        ("c1", "TAG:A", begin, begin + 2000),
        ("c1", "TAG:B", begin + 2000, begin + 3000),
        # It is online, and its next heartbeat is not due yet.
        ("c2", "SQL92:a > 1", begin + 2000, begin + 3000),
    ]
    assert rows.ended == ["g"], "pulls of before and behind the change are rows of their own"


def test_a_subscription_that_is_too_long_is_not_known(ledger: PullLedger, clock: Clock) -> None:
    ledger.note_heartbeat("c1", data("a" * 4001, "SQL92"))
    assert members(ledger) == [("c1", None, clock.time, clock.time)]


def test_members_that_change_without_end_do_not_grow_the_file(tmp_path: Path, rows: Rows, clock: Clock) -> None:
    with closing(opened(tmp_path, rows, clock, most_rows=10)) as ledger:
        for number in range(30):
            clock.time += 1
            ledger.note_heartbeat("c1", data(f"a > {number}", "SQL92"))
        ledger.save()
        assert [text for _, text, *_ in members(ledger)] == [f"SQL92:a > {number}" for number in range(20, 30)]


def test_long_filters_do_not_grow_the_file_beyond_its_bound(tmp_path: Path, rows: Rows, clock: Clock) -> None:
    begin = clock.time
    with closing(opened(tmp_path, rows, clock, most_rows=1000)) as ledger:
        for part in range(30):
            rows.rows = [
                pull(1 + part * 100 + number, number, number + 1, begin + part, tags=f"{number}-{part}" + "x" * 3900)
                for number in range(100)
            ]
            clock.time = begin + part
            ledger.save()
    path = tmp_path / "config" / "ledger.db"
    assert path.stat().st_size < 3 << 20  # of 12 MB that came
    with closing(sqlite3.connect(path)) as db:
        ((texts,),) = db.execute("SELECT count(*) FROM texts WHERE text LIKE 'TAG:%'")
        ((kept,),) = db.execute("SELECT count(*) FROM stretches")
    assert texts == kept >= 100


def test_a_broker_that_stops_leaves_no_gap_and_one_that_is_killed_does(
    tmp_path: Path, rows: Rows, clock: Clock
) -> None:
    begin = clock.time
    first = opened(tmp_path, rows, clock)
    rows.rows = [pull(7, 0, 5, begin)]
    first.close()
    assert rows.last_id == 0
    clock.time += 1000
    second = opened(tmp_path, rows, clock)
    assert rows.last_id == 7, "numbers go on"
    answer = second.answer("t", 0, 1, "g")
    assert (answer["since"], answer["gaps"], len(answer["stretches"])) == (begin, [], 1)
    clock.time += 1000
    second.save()
    killed = clock.time
    second._database._db.close()  # type: ignore[union-attr]  # noqa: SLF001 - as a process that is killed leaves it
    clock.time += 1000
    with closing(opened(tmp_path, rows, clock)) as third:
        assert third.answer("t", 0, 1, "g")["gaps"] == [{"from": killed, "to": clock.time}]


def test_rows_that_the_data_plane_had_to_drop_are_a_gap(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    rows.gap = clock.time - 500
    assert ledger.answer("t", 0, 0, "g")["gaps"] == [{"from": clock.time - 500, "to": clock.time}]


def test_old_rows_go_and_the_ledger_tells_since_when_it_is_complete(
    ledger: PullLedger, rows: Rows, clock: Clock
) -> None:
    begin = clock.time
    rows.rows = [pull(1, 0, 5, begin, client="old", tags="O"), pull(2, 5, 9, begin + HOUR)]
    ledger.note_heartbeat("old", data("O"))
    ledger.note_leave("g", "old")
    ledger.save()
    clock.time = begin + 24 * HOUR + 1
    ledger.save()
    answer = ledger.answer("t", 0, 1, "g")
    assert (answer["stretches"], answer["members"], answer["since"]) == ([], [], begin + 1)
    assert len(stretches(ledger, 6)) == 1


def test_no_more_rows_than_allowed_are_kept_the_newest_of_them(tmp_path: Path, rows: Rows, clock: Clock) -> None:
    begin = clock.time
    with closing(opened(tmp_path, rows, clock, most_rows=10)) as ledger:
        rows.rows = [pull(number, number, number + 1, begin + number) for number in range(1, 26)]
        clock.time = begin + 100
        ledger.save()
        assert stretches(ledger, 15) == []
        assert len(stretches(ledger, 16)) == 1
        assert ledger.answer("t", 0, 0, "g")["since"] == begin + 16


@pytest.mark.parametrize("harm", [b"no database at all" * 100, None], ids=["damaged", "of another version"])
def test_a_file_that_cannot_be_used_is_put_aside(
    tmp_path: Path, rows: Rows, clock: Clock, harm: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config" / "ledger.db"
    path.parent.mkdir()
    if harm is not None:
        path.write_bytes(harm)
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
    with closing(opened(tmp_path, rows, clock)) as ledger:
        rows.rows = [pull(1, 0, 5, clock.time)]
        assert len(stretches(ledger, 1)) == 1
    assert path.with_name("ledger.db.damaged").exists()
    assert "the ledger begins anew" in caplog.text


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"")
    database = LedgerDatabase(tmp_path / "config" / "ledger.db", 0o600)
    with pytest.raises(StoreIOError, match=r"config"):
        database.open(1)
    database.close()


def test_rows_that_could_not_be_saved_are_a_gap(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    begin = clock.time
    ledger.note_heartbeat("c1", data("A"))
    rows.rows = [pull(1, 0, 5, begin), UNSAVEABLE]
    clock.time += 1000
    with pytest.raises(StoreIOError):
        ledger.save()
    clock.time += 1000
    answer = ledger.answer("t", 0, 1, "g")
    assert (answer["stretches"], answer["gaps"]) == ([], [{"from": begin, "to": clock.time}])
    assert [each["clientId"] for each in answer["members"]] == ["c1"], "what members want is saved at the next time"
    clock.time += 1000
    assert len(ledger.answer("t", 0, 1, "g")["gaps"]) == 1


def test_an_answer_tells_the_rows_that_it_lacks(ledger: PullLedger, rows: Rows, clock: Clock) -> None:
    begin = clock.time
    rows.rows = [pull(1, 0, 5, begin)]
    ledger.save()
    rows.rows = [UNSAVEABLE]
    clock.time += 1000
    answer = ledger.answer("t", 0, 1, "g")
    assert (len(answer["stretches"]), answer["gaps"]) == (1, [{"from": begin, "to": clock.time}])


def test_a_ledger_whose_last_rows_could_not_be_saved_has_a_gap(tmp_path: Path, rows: Rows, clock: Clock) -> None:
    begin = clock.time
    ledger = opened(tmp_path, rows, clock)
    ledger.save()
    rows.rows = [UNSAVEABLE]
    clock.time += 1000
    ledger.close()
    clock.time += 1000
    with closing(opened(tmp_path, rows, clock)) as again:
        assert again.answer("t", 0, 1, "g")["gaps"] == [{"from": begin, "to": clock.time}]


def test_more_rows_than_an_answer_has_are_told(
    ledger: PullLedger, rows: Rows, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmqfast.broker.ledger.database.MOST_ROWS", 2)
    rows.rows = [pull(number, 0, 5, clock.time) for number in (1, 2)]
    answer = ledger.answer("t", 0, 1, "g")
    assert (len(answer["stretches"]), answer["isCut"]) == (2, False)
    rows.rows = [pull(3, 0, 5, clock.time)]
    answer = ledger.answer("t", 0, 1, "g")
    assert (len(answer["stretches"]), answer["isCut"]) == (2, True)
