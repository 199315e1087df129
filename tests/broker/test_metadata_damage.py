"""A broker's metadata whose database was damaged: the true state, or that of RocketMQ's files; never an empty one."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import pytest

from rmqfast.broker import Broker
from rmqfast.broker.metadata import Metadata
from rmqfast.errors import CorruptError, StoreIOError
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.store.config import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    TopicConfig,
    TopicConfigTable,
)
from tests.effort import effort
from tests.embedded.client import broker_config
from tests.interop.rocketmq import create_topic

pytestmark = pytest.mark.slow
TABLES = (TopicConfigTable, SubscriptionGroupTable, ConsumerOffsetTable, DelayOffsetTable)
State = list[dict[str, object]]


def change(metadata: Metadata, generation: int) -> None:
    for number in range(12):
        topic = TopicConfig(topic_name=f"t{number}", read_queue_nums=1 + generation)
        metadata.put(TopicConfigTable, topic.topic_name, topic.to_json())
        group = SubscriptionGroupConfig(group_name=f"g{number}", retry_max_times=generation)
        metadata.put(SubscriptionGroupTable, group.group_name, group.to_json())
        metadata.put(ConsumerOffsetTable, f"t{number}@g{number}", {number: 100 * generation})
    metadata.put(DelayOffsetTable, "3", generation)
    metadata.flush()


def opened(root: Path) -> Metadata:
    metadata = Metadata(root)
    for table in TABLES:
        metadata.load(table)
    return metadata


def state(root: Path) -> State:
    """What a broker that starts on the store knows."""
    with closing(Metadata(root)) as metadata:
        return [metadata.load(table).to_json() for table in TABLES]


def in_files(root: Path) -> State:
    return [table.load(root).to_json() for table in TABLES]


def stopped(root: Path) -> Path:
    """The store of a broker that was stopped."""
    with closing(opened(root)) as metadata:
        for generation in range(3):
            change(metadata, generation)
            metadata.write_files()
    return root


def killed(root: Path) -> Path:
    """The store of a broker that was killed: the last change is in the database's log, and not in RocketMQ's files."""
    with closing(opened(root / "alive")) as metadata:
        for generation in range(3):
            change(metadata, generation)
            metadata.write_files()
        shutil.copytree(root / "alive" / "config", root / "killed" / "config")
        for generation in (3, 4):
            change(metadata, generation)
        for name in ("metadata.db", "metadata.db-wal", "metadata.db-count"):
            shutil.copy(root / "alive" / "config" / name, root / "killed" / "config" / name)
    return root / "killed"


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


class Flips:
    """Flips bits of one file of a store, one at a time, and counts by what a start makes of it."""

    def __init__(self, source: Path, name: str) -> None:
        self.source = source
        self.name = name
        self.size = (source / "config" / name).stat().st_size
        self.place = source.with_name("flipped")
        shutil.copytree(source, self.place)
        self.true, self.files = state(self.place), in_files(source)
        assert self.true[0]["topicConfigTable"]
        assert self.files[0]["topicConfigTable"]

    def bits(self, header: int, count: int, seed: str) -> list[int]:
        """A bit of each byte of the header, and so many others."""
        chance = random.Random(seed)
        of_header = [8 * byte + chance.randrange(8) for byte in range(header)]
        return of_header + [chance.randrange(8 * self.size) for _ in range(count)]

    def outcomes(self, bits: Iterable[int], caplog: pytest.LogCaptureFixture) -> Counter[str]:
        counts: Counter[str] = Counter()
        for bit in bits:
            shutil.rmtree(self.place)
            shutil.copytree(self.source, self.place)
            flip(self.place / "config" / self.name, bit)
            caplog.clear()
            counts[self.outcome(state(self.place), bit, caplog.text)] += 1
        return counts

    def outcome(self, found: State, bit: int, log: str) -> str:
        is_aside = (self.place / "config" / "metadata.db.damaged").exists()
        if is_aside:
            assert found == self.files, bit
            assert "RocketMQ's files beside it are read instead (topics.json, subscriptionGroup.json, " in log, bit
            return "files"
        if found == self.true:
            return "true"
        assert "the last change of metadata.db is torn" in log, bit
        assert found[2]["offsetTable"] == {f"t{number}@g{number}": {number: 300} for number in range(12)}, bit
        return "before the last change"


def test_a_flipped_bit_of_a_database_leaves_the_true_state_or_that_of_the_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flips = Flips(stopped(tmp_path / "s"), "metadata.db")
    counts = flips.outcomes(flips.bits(100, 40, "quick"), caplog)
    assert counts.keys() == {"true", "files"}


def test_a_flipped_bit_of_the_log_of_a_database_loses_at_most_a_torn_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flips = Flips(killed(tmp_path), "metadata.db-wal")
    assert flips.true[0] != flips.files[0]
    counts = flips.outcomes(flips.bits(32, 40, "quick log"), caplog)
    assert counts["files"] > counts["true"] + counts["before the last change"]


def test_a_flipped_bit_of_the_schema_of_a_database_has_it_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = stopped(tmp_path / "s")
    schema = (source / "config" / "metadata.db").read_bytes().index(b"CREATE TABLE")
    flips = Flips(source, "metadata.db")
    # the highest bit makes it no UTF-8, which is another error of Python's
    counts = flips.outcomes([8 * (schema - 20 + byte) + bit for byte in range(0, 48, 3) for bit in (0, 7)], caplog)
    assert counts.keys() <= {"true", "files"}
    assert counts["files"] > 10


@pytest.mark.long
@pytest.mark.parametrize("name", ["metadata.db", "metadata.db-wal"])
def test_flipped_bits_at_length(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """20,000 of each file with RMQFAST_FULL=1, or as RMQFAST_FLIPS says."""
    flips = Flips(killed(tmp_path) if name.endswith("wal") else stopped(tmp_path / "s"), name)
    flips.outcomes(range(100 * 8), caplog)
    flips.outcomes(flips.bits(0, effort("RMQFAST_FLIPS", 3_000, 20_000), f"long {name}"), caplog)


def test_a_database_with_two_pages_in_each_others_place_is_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = stopped(tmp_path / "s")
    whole, true = (source / "config" / "metadata.db").read_bytes(), in_files(source)
    pages = [whole[at : at + 4096] for at in range(0, len(whole), 4096)]
    assert len(pages) > 4
    for first, second in combinations(range(len(pages)), 2):
        place = tmp_path / f"{first}-{second}"
        shutil.copytree(source, place)
        swapped = list(pages)
        swapped[first], swapped[second] = pages[second], pages[first]
        (place / "config" / "metadata.db").write_bytes(b"".join(swapped))
        caplog.clear()
        assert state(place) == true, (first, second)
        assert "RocketMQ's files beside it are read instead" in caplog.text, (first, second)


def test_a_database_cut_anywhere_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = stopped(tmp_path / "s")
    whole, true = (source / "config" / "metadata.db").read_bytes(), in_files(source)
    for size in (*range(0, len(whole), 2048), 1, 99, 100, len(whole) - 1):
        place = tmp_path / str(size)
        shutil.copytree(source, place)
        (place / "config" / "metadata.db").write_bytes(whole[:size])
        caplog.clear()
        assert state(place) == true
        aside = place / "config" / "metadata.db.damaged"
        assert (aside.read_bytes() if aside.exists() else b"") == whole[:size]
        assert "are read" in caplog.text


@pytest.mark.parametrize("name", ["metadata.db-wal", "metadata.db-journal", "metadata.db-shm"])
@pytest.mark.parametrize("size", [0, 31, 9000])
def test_what_others_left_beside_a_database_changes_nothing(tmp_path: Path, name: str, size: int) -> None:
    source = stopped(tmp_path / "s")
    true = in_files(source)
    (source / "config" / name).write_bytes(random.Random(size).randbytes(size))
    assert state(source) == true


def test_the_log_of_another_database_is_not_played_into_this_one(tmp_path: Path) -> None:
    source, other = stopped(tmp_path / "s"), killed(tmp_path / "other")
    true = in_files(source)
    shutil.copy(other / "config" / "metadata.db-wal", source / "config" / "metadata.db-wal")
    assert state(source) in (true, state(other))


def lose_log(config: Path) -> None:
    (config / "metadata.db-wal").unlink()


def empty_log(config: Path) -> None:
    os.truncate(config / "metadata.db-wal", 0)


def cut_log_between_changes(config: Path) -> None:
    """A frame with the size of the database is the last of a change."""
    log = (config / "metadata.db-wal").read_bytes()
    frame = 24 + int.from_bytes(log[8:12], "big")
    ends = [at + frame for at in range(32, len(log), frame) if any(log[at + 4 : at + 8])]
    os.truncate(config / "metadata.db-wal", ends[-3])


def lose_database(config: Path) -> None:
    lose_log(config)
    (config / "metadata.db").unlink()


@pytest.mark.parametrize("lose", [lose_log, empty_log, cut_log_between_changes, lose_database])
def test_a_database_that_lost_its_last_changes_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, lose: Callable[[Path], None]
) -> None:
    source = killed(tmp_path)
    lose(source / "config")
    found = state(source)
    assert found[0]["topicConfigTable"]
    told = re.search(r"config/metadata\.db: it has (\d+) changes, and had (\d+): its write-ahead", caplog.text)
    assert told is not None
    assert int(told[1]) < int(told[2])
    caplog.clear()
    # it goes on from there
    assert state(source) == found
    assert caplog.text == ""


def test_an_older_copy_of_a_database_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = stopped(tmp_path / "s")
    older = (source / "config" / "metadata.db").read_bytes()
    with closing(opened(source)) as metadata:
        change(metadata, 7)
    (source / "config" / "metadata.db").write_bytes(older)
    state(source)
    assert re.search(
        r"it has \d+ changes, and had \d+: its write-ahead log is lost, or an older one was put", caplog.text
    )


@pytest.mark.parametrize("text", [None, b"", b"12", b"x" * 20, bytes(20)])
def test_a_database_whose_count_of_changes_is_lost_is_what_it_was_and_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes | None
) -> None:
    source = stopped(tmp_path / "s")
    count, true = source / "config" / "metadata.db-count", in_files(source)
    count.unlink()
    if text is not None:
        count.write_bytes(text)
    for told in (1, 0):
        caplog.clear()
        assert state(source) == true
        assert caplog.text.count(f"{count}: expected a number, got none") == told


def test_an_empty_database_whose_log_has_changes_is_damaged(tmp_path: Path) -> None:
    source = killed(tmp_path)
    os.truncate(source / "config" / "metadata.db", 0)
    assert state(source) == in_files(source)
    assert (source / "config" / "metadata.db.damaged").exists()


def test_a_damaged_database_without_files_beside_it_is_no_beginning(tmp_path: Path) -> None:
    source = stopped(tmp_path / "s")
    for path in (source / "config").glob("*.json*"):
        path.unlink()
    flip(source / "config" / "metadata.db", 8)
    for _ in range(2):  # neither with the next start
        with pytest.raises(CorruptError, match=r"metadata\.db: damaged .*put topics\.json and the others of a backup"):
            state(source)


def test_a_database_that_may_not_be_read_is_an_error_and_not_damage() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = stopped(Path(directory) / "s")
        code = f"""
import os
from rmqfast.broker.metadata import Metadata
from rmqfast.errors import StoreIOError
from rmqfast.store.config import TopicConfigTable
if os.geteuid() == 0:
    os.setgroups([])
    os.setresuid(65534, 65534, 65534)
try:
    Metadata({str(root)!r}).load(TopicConfigTable)
except StoreIOError as error:
    print(error)
"""
        for path in (Path(directory), root, root / "config", *(root / "config").iterdir()):
            path.chmod(0o777)
        for hidden in (root / "config" / "metadata.db", root / "config" / "topics.json"):
            hidden.chmod(0)
            told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
            assert "permission denied" in told.lower()
            assert str(hidden) in told
            hidden.chmod(0o666)
        assert not (root / "config" / "metadata.db.damaged").exists()


@pytest.mark.parametrize("name", ["metadata.db", "topics.json"])
def test_a_directory_in_the_place_of_a_file_is_an_error(tmp_path: Path, name: str) -> None:
    source = stopped(tmp_path / "s")
    (source / "config" / name).unlink()
    (source / "config" / name).mkdir()
    with pytest.raises(StoreIOError, match=rf"(?i)is a directory.*config/{name}|config/{name}.*is a directory"):
        state(source)


def test_a_broker_serves_what_the_files_say_where_its_database_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(broker_config(tmp_path)) as broker:
        create_topic(broker.address, "orders", 3)
    database = tmp_path / "config" / "metadata.db"
    text = database.read_bytes()
    flip(database, 8 * text.index(b'"orders"') + 9)
    with Broker(broker_config(tmp_path)) as broker, RemotingClient(broker.address) as client:
        assert b'"orders"' in client.request(RequestCode.GET_ALL_TOPIC_CONFIG).body
    assert "contradicts its checksum" in caplog.text
    assert f"it is {database}.damaged now" in caplog.text


def old_database(path: Path, offsets: dict[str, str], digest: str) -> None:
    """A database as version 0.1.0 wrote it."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        columns = "kind TEXT, file TEXT, name TEXT, value TEXT, PRIMARY KEY (file, kind, name)"
        db.execute(f"CREATE TABLE IF NOT EXISTS rows ({columns}) WITHOUT ROWID")
        db.execute("CREATE TABLE IF NOT EXISTS digests (number INTEGER PRIMARY KEY, file TEXT, digest TEXT)")
        rows = [("entry", "consumerOffset.json", name, value) for name, value in offsets.items()]
        db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
        db.execute("INSERT INTO digests (file, digest) VALUES ('consumerOffset.json', ?)", (digest,))
        db.commit()


def offsets(root: Path) -> object:
    with closing(Metadata(root)) as metadata:
        return metadata.load(ConsumerOffsetTable).to_json()["offsetTable"]


def digest_of(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_a_database_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    ConsumerOffsetTable.of_members({"offsetTable": {"t@g": {0: 5}}}).save(tmp_path)
    digest = digest_of(tmp_path / "config" / "consumerOffset.json")
    database = tmp_path / "config" / "metadata.db"
    old_database(database, {"t@g": '{"0":7}'}, digest)
    for _ in range(2):
        assert offsets(tmp_path) == {"t@g": {0: 7}}
    # that version had the store once more
    old_database(database, {"t@g": '{"0":9}'}, digest_of(tmp_path / "config" / "consumerOffset.json"))
    for _ in range(2):
        assert offsets(tmp_path) == {"t@g": {0: 9}}
    assert not (tmp_path / "config" / "metadata.db.damaged").exists()


def test_a_database_of_the_version_before_that_is_damaged_is_put_aside(tmp_path: Path) -> None:
    ConsumerOffsetTable.of_members({"offsetTable": {"t@g": {0: 5}}}).save(tmp_path)
    digest = digest_of(tmp_path / "config" / "consumerOffset.json")
    old_database(tmp_path / "config" / "metadata.db", {"t@g": '{"0:7}'}, digest)
    assert offsets(tmp_path) == {"t@g": {0: 5}}
    assert (tmp_path / "config" / "metadata.db.damaged").exists()
