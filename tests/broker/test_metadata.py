"""Topics, groups and offsets over restarts: kills at any write, files of others, damage, a full disk."""

from __future__ import annotations

import logging
import random
import resource
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rmqfast.broker.metadata import Metadata
from rmqfast.errors import CorruptError, StoreIOError
from rmqfast.store.config import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfig, TopicConfigTable

#: What a reference knows of a store: offsets by `topic@group`, then by queue.
State = dict[str, dict[int, int]]


def put(metadata: Metadata, key: str, queues: dict[int, int] | None) -> None:
    metadata.put(ConsumerOffsetTable, key, queues)


def kept(root: Path) -> State:
    """What a broker that starts on the store knows."""
    with closing(Metadata(root)) as metadata:
        return state_of(metadata.load(ConsumerOffsetTable))


def in_file(root: Path) -> State:
    """What a broker of RocketMQ that starts on the store knows."""
    return state_of(ConsumerOffsetTable.load(root))


def state_of(table: ConsumerOffsetTable) -> State:
    state: State = table.to_json()["offsetTable"]
    return state


def by_another_broker(root: Path, state: State) -> None:
    """Writes the file as somebody who knows of no database."""
    table = ConsumerOffsetTable.of_members({"offsetTable": {key: dict(queues) for key, queues in state.items()}})
    table.save(root)


class History:
    """A broker's metadata changed at random, and each state that was acknowledged.

    Attributes:
        states: The state after each flush; the first one is empty.
        ends: The length of the WAL after each flush.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.chance = random.Random(seed)
        self.metadata = Metadata(root)
        self.metadata.load(ConsumerOffsetTable)
        self.metadata.flush()
        self.states: list[State] = [{}]
        self.ends = [self.wal.stat().st_size]

    @property
    def wal(self) -> Path:
        return self.root / "config" / "metadata.db-wal"

    def change(self) -> None:
        """Some changes, some of them large, and a flush."""
        state = {key: dict(queues) for key, queues in self.states[-1].items()}
        for _ in range(self.chance.randint(1, 6)):
            key = f"t{self.chance.randint(0, 40)}@g"
            if self.chance.random() < 0.2:
                state.pop(key, None)
                put(self.metadata, key, None)
            else:
                queues = {queue: self.chance.randint(0, 1 << 40) for queue in range(self.chance.choice([1, 4, 400]))}
                state[key] = queues
                put(self.metadata, key, queues)
        self.metadata.flush()
        self.states.append(state)
        self.ends.append(self.wal.stat().st_size)


@pytest.mark.slow
def test_a_kill_at_any_write_of_the_database_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    history = History(tmp_path / "s", seed=18)
    for _ in range(25):
        history.change()
    config = tmp_path / "s" / "config"
    database, wal = (config / "metadata.db").read_bytes(), history.wal.read_bytes()
    cuts = {end + by for end in history.ends for by in (-1, 0, 1, 24)} | set(range(history.ends[0], len(wal), 1021))
    for number, cut in enumerate(sorted(cut for cut in cuts if history.ends[0] <= cut <= len(wal))):
        killed = tmp_path / f"{number}" / "config"
        killed.mkdir(parents=True)
        (killed / "metadata.db").write_bytes(database)
        (killed / "metadata.db-wal").write_bytes(wal[:cut])
        acknowledged = max(at for at, end in enumerate(history.ends) if end <= cut)
        state = kept(killed.parent)
        # what was being written may be there as a whole, but never a part of it
        assert state in history.states[acknowledged : acknowledged + 2], cut
        shutil.rmtree(killed.parent)
    history.metadata.close()
    assert number > 100


def test_a_kill_while_the_log_of_the_database_moves_into_it_loses_nothing(tmp_path: Path) -> None:
    history = History(tmp_path / "s", seed=19)
    for _ in range(25):
        history.change()
    wal, before = history.wal.read_bytes(), (tmp_path / "s" / "config" / "metadata.db").read_bytes()
    history.metadata.close()
    after = (tmp_path / "s" / "config" / "metadata.db").read_bytes()
    size = 4096
    for seed in range(20):
        chance = random.Random(seed)
        pages = [(after if chance.random() < 0.5 else before)[at : at + size] for at in range(0, len(after), size)]
        killed = tmp_path / f"{seed}" / "config"
        killed.mkdir(parents=True)
        (killed / "metadata.db").write_bytes(b"".join(page.ljust(size, b"\0") for page in pages))
        (killed / "metadata.db-wal").write_bytes(wal)
        assert kept(killed.parent) == history.states[-1]


def test_a_kill_at_any_write_of_the_files_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "s"
    metadata = Metadata(root)
    metadata.load(ConsumerOffsetTable)
    files: list[bytes] = []
    for generation in range(4):
        put(metadata, "t@g", {0: generation})
        metadata.flush()
        metadata.write_files()
        files.append((root / "config" / "consumerOffset.json").read_bytes())
    put(metadata, "t@g", {0: 99})
    metadata.flush()
    # nothing is written while it is copied; the files are replaced below
    metadata.write_files()
    shutil.copytree(root, tmp_path / "killed")
    metadata.close()
    name, config = "consumerOffset.json", tmp_path / "killed" / "config"
    for old in (*files, None):
        for backup in (*files, None):
            for path, text in ((config / name, old), (config / f"{name}.bak", backup)):
                path.unlink(missing_ok=True)
                if text is not None:
                    path.write_bytes(text)
            shutil.copytree(tmp_path / "killed", tmp_path / "again")
            assert kept(tmp_path / "again") == {"t@g": {0: 99}}
            shutil.rmtree(tmp_path / "again")


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_are_those_of_a_dictionary(tmp_path: Path, seed: int) -> None:
    history, root = History(tmp_path / "s", seed), tmp_path / "s"
    for _ in range(30):
        match history.chance.randrange(6):
            case 0:  # a clean stop
                history.metadata.close()
                assert in_file(root) == history.states[-1]
                history.metadata = Metadata(root)
                assert state_of(history.metadata.load(ConsumerOffsetTable)) == history.states[-1]
            case 1:  # another broker has the store for a while
                history.metadata.close()
                history.states.append({f"t{history.chance.randint(0, 40)}@g": {0: history.chance.randint(0, 9)}})
                by_another_broker(root, history.states[-1])
                history.metadata = Metadata(root)
                assert state_of(history.metadata.load(ConsumerOffsetTable)) == history.states[-1]
            case 2:
                history.metadata.write_files()
                assert in_file(root) == history.states[-1]
            case _:
                history.change()
    history.metadata.close()
    assert kept(root) == in_file(root) == history.states[-1]


def with_offsets(root: Path) -> Path:
    """A store that a broker left with offsets; the path of their file."""
    with closing(Metadata(root)) as metadata:
        metadata.load(ConsumerOffsetTable)
        put(metadata, "t@g", {0: 5})
    return root / "config" / "consumerOffset.json"


def test_a_file_that_was_removed_or_damaged_is_written_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = with_offsets(tmp_path)
    path.unlink()
    assert kept(tmp_path) == in_file(tmp_path) == {"t@g": {0: 5}}
    assert f"{path}: missing; it is written anew from metadata.db" in caplog.text
    path.write_bytes(b"{")
    path.with_name("consumerOffset.json.bak").unlink(missing_ok=True)
    assert kept(tmp_path) == in_file(tmp_path) == {"t@g": {0: 5}}
    assert "it is written anew from metadata.db" in caplog.records[-1].message


def test_a_file_that_cannot_be_read_gives_way_to_the_database_and_not_to_its_older_backup(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = with_offsets(tmp_path)
    with closing(Metadata(tmp_path)) as metadata:
        metadata.load(ConsumerOffsetTable)
        put(metadata, "t@g", {0: 9})
    assert state_of(ConsumerOffsetTable.load(tmp_path)) == {"t@g": {0: 9}}
    path.write_bytes(b'{"offsetTable":{"t@g":{0:')
    assert path.with_name("consumerOffset.json.bak").exists()
    assert kept(tmp_path) == in_file(tmp_path) == {"t@g": {0: 9}}
    assert "EOF while parsing a value; it is written anew from metadata.db" in caplog.text


@pytest.mark.parametrize("is_there", [True, False])
def test_neither_a_file_nor_a_backup_that_can_be_read_is_no_loss_beside_the_database(
    tmp_path: Path, *, is_there: bool
) -> None:
    path = with_offsets(tmp_path)
    path.with_name("consumerOffset.json.bak").write_bytes(b"no backup")
    if is_there:
        path.write_bytes(b"no file")
    else:
        path.unlink()
    assert kept(tmp_path) == in_file(tmp_path) == {"t@g": {0: 5}}


def test_a_backup_of_another_broker_is_taken_where_its_file_cannot_be_read(tmp_path: Path) -> None:
    path = with_offsets(tmp_path)
    for offset in (77, 78):
        by_another_broker(tmp_path, {"t@g": {0: offset}})
    path.write_bytes(b"{")
    assert kept(tmp_path) == {"t@g": {0: 77}}


def test_the_files_have_the_last_changes_before_a_kill_once_a_broker_has_started(tmp_path: Path) -> None:
    with closing(Metadata(tmp_path / "alive")) as metadata:
        metadata.load(ConsumerOffsetTable)
        put(metadata, "t@g", {0: 5})
        metadata.flush()
        metadata.write_files()
        before = (tmp_path / "alive" / "config" / "consumerOffset.json").read_bytes()
        put(metadata, "t@g", {0: 9})
        metadata.flush()
        # Nothing is written while it is copied; the file is replaced below.
        metadata.write_files()
        shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    (tmp_path / "killed" / "config" / "consumerOffset.json").write_bytes(before)
    assert in_file(tmp_path / "killed") == {"t@g": {0: 5}}
    assert kept(tmp_path / "killed") == in_file(tmp_path / "killed") == {"t@g": {0: 9}}


def test_what_another_broker_changed_in_a_file_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(Metadata(tmp_path)) as metadata:
        metadata.load(ConsumerOffsetTable)
        for number in range(7):
            put(metadata, f"t{number}@g", {0: 5, 1: 5})
    state = {f"t{number}@g": {0: 5, 1: 5} for number in range(1, 7)}
    by_another_broker(tmp_path, state)
    assert kept(tmp_path) == state
    assert "it is taken in place of what metadata.db has; gone: t0@g" in caplog.text
    caplog.clear()
    state |= {"t1@g": {0: 9, 1: 4}, "t2@g": {0: 9, 1: 5}, "t3@g": {0: 5}, "t9@g": {0: 1}}
    by_another_broker(tmp_path, state)
    assert kept(tmp_path) == state
    assert "has; with an earlier offset: t1@g, t3@g; different: t2@g; new: t9@g" in caplog.text
    caplog.clear()
    by_another_broker(tmp_path, {})
    assert kept(tmp_path) == {}
    assert "has; gone: t1@g, t2@g, t3@g, t4@g, t5@g and 2 more" in caplog.text
    caplog.clear()
    assert kept(tmp_path) == {}
    assert caplog.text == ""


def test_a_broker_of_java_that_was_killed_as_it_saved_leaves_its_file_as_a_backup(tmp_path: Path) -> None:
    path = with_offsets(tmp_path)
    by_another_broker(tmp_path, {"t@g": {0: 77}})
    path.replace(path.with_name(f"{path.name}.bak"))
    assert kept(tmp_path) == {"t@g": {0: 77}}


def test_neither_the_database_nor_the_file_is_an_error_and_not_a_beginning(tmp_path: Path) -> None:
    path = with_offsets(tmp_path)
    path.with_name("metadata.db").unlink()
    path.write_bytes(b"{")
    path.with_name(f"{path.name}.bak").unlink(missing_ok=True)
    with closing(Metadata(tmp_path)) as metadata, pytest.raises(CorruptError, match=r"consumerOffset\.json"):
        metadata.load(ConsumerOffsetTable)


@contextmanager
def no_room(path: Path) -> Iterator[None]:
    """Lets no file grow beyond what this one has: SQLite takes it for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_the_disk_refused_is_written_once_there_is_room(tmp_path: Path) -> None:
    history = History(tmp_path, seed=5)
    history.change()
    with no_room(history.wal):
        put(history.metadata, "late@g", {0: 1})
        with pytest.raises(StoreIOError, match=r"metadata\.db"):
            history.metadata.flush()
        with pytest.raises(StoreIOError):
            history.metadata.flush()
    put(history.metadata, "later@g", {0: 2})
    history.metadata.flush()
    history.metadata.close()
    assert kept(tmp_path) == in_file(tmp_path) == history.states[-1] | {"late@g": {0: 1}, "later@g": {0: 2}}


def test_a_store_of_a_full_disk_is_taken_over_as_a_whole_or_not_yet(tmp_path: Path) -> None:
    state: State = {f"t{number}@g": {0: number} for number in range(500)}
    by_another_broker(tmp_path, state)
    with closing(Metadata(tmp_path)) as metadata:
        with no_room(tmp_path):
            assert len(metadata.load(ConsumerOffsetTable)) == 500
            put(metadata, "new@g", {0: 1})
            with pytest.raises(StoreIOError):
                metadata.flush()
        metadata.flush()
    assert kept(tmp_path) == in_file(tmp_path) == state | {"new@g": {0: 1}}


def test_a_change_costs_what_it_is_whatever_else_there_is(tmp_path: Path) -> None:
    def written(topics: int) -> int:
        """Bytes that are written for one more topic."""
        root = tmp_path / str(topics)
        with closing(Metadata(root)) as metadata:
            metadata.load(TopicConfigTable)
            for number in range(topics):
                metadata.put(TopicConfigTable, f"t{number}", TopicConfig(topic_name=f"t{number}").to_json())
            metadata.flush()
            wal = root / "config" / "metadata.db-wal"
            before = wal.stat().st_size
            metadata.put(TopicConfigTable, "one", TopicConfig(topic_name="one").to_json())
            metadata.flush()
            return wal.stat().st_size - before

    assert (
        0 < written(30) <= written(3000) <= 6 * 4120
    )  # pages on the way down a B-tree, and where one is full, its parts


def test_built_in_entries_are_written_with_the_first_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    built_in = [TopicConfig(topic_name="own", read_queue_nums=7)]
    with closing(Metadata(tmp_path)) as metadata:
        assert metadata.load_with(TopicConfigTable, built_in)["own"].read_queue_nums == 7
        metadata.load(SubscriptionGroupTable)
    assert not (tmp_path / "config" / "topics.json").exists()
    with closing(Metadata(tmp_path)) as metadata:
        metadata.load_with(TopicConfigTable, built_in)
        metadata.put(TopicConfigTable, "t", TopicConfig(topic_name="t").to_json())
    assert sorted(TopicConfigTable.load(tmp_path)) == ["own", "t"]
