"""The files below `config/`: RocketMQ's bytes, and whatever happens to a file, never silently an empty table."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

import rmqfast
from rmqfast.errors import ArgumentError, CorruptError, UnsupportedStoreError
from rmqfast.store import (
    ConsumerFilterTable,
    ConsumerOffsetTable,
    DataVersion,
    DelayOffsetTable,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    TopicConfig,
    TopicConfigTable,
    built_in_groups,
    built_in_topics,
)
from tests import golden_stores
from tests.golden_stores import PathOf

Table = TopicConfigTable | SubscriptionGroupTable | ConsumerOffsetTable | DelayOffsetTable | ConsumerFilterTable
TABLES: tuple[type[Table], ...] = (
    TopicConfigTable,
    SubscriptionGroupTable,
    ConsumerOffsetTable,
    DelayOffsetTable,
    ConsumerFilterTable,
)
# 5.4 has another fastjson, which formats in another way
OF_FASTJSON_1 = [name for name in golden_stores.NAMES if not name.endswith("5.4.0")]


def offsets(root: Path, generation: int) -> None:
    table = ConsumerOffsetTable()
    for queue in range(3):
        table.commit("T", "g", queue, generation)
    table.save(root)


def loaded(root: Path) -> int | None:
    """The generation that `offsets` saved last."""
    return ConsumerOffsetTable.load(root).offset("T", "g", 1)


def file_of(root: Path, name: str = "consumerOffset.json") -> Path:
    return root / "config" / name


def backup_of(root: Path) -> Path:
    return file_of(root, "consumerOffset.json.bak")


@pytest.mark.parametrize("name", OF_FASTJSON_1)
def test_what_a_broker_wrote_is_written_again_byte_for_byte(name: str, golden_store: PathOf, tmp_path: Path) -> None:
    store = golden_store(name)
    compared = 0
    for table in TABLES:
        table.load(store).save(tmp_path)
        if file_of(store, table.FILE_NAME).exists():
            compared += 1
            assert file_of(tmp_path, table.FILE_NAME).read_bytes() == file_of(store, table.FILE_NAME).read_bytes()
    assert compared >= 4


@pytest.mark.parametrize("table", TABLES)
def test_what_5_4_wrote_has_the_same_values_after_a_round_trip(
    table: type[Table], golden_store: PathOf, tmp_path: Path
) -> None:
    read = table.load(golden_store("basic-5.4.0"))
    read.save(tmp_path)
    assert (table.load(tmp_path).to_json(), table.load(tmp_path).other) == (read.to_json(), read.other)


def test_topics_and_groups_that_are_added_in_any_order_have_the_bytes_of_a_broker(
    golden_store: PathOf, tmp_path: Path
) -> None:
    store = golden_store("offsets-4.9.4")
    topics, groups = TopicConfigTable.load(store), SubscriptionGroupTable.load(store)
    chance = random.Random(1)
    shuffled = TopicConfigTable(chance.sample(list(topics.values()), len(topics)), topics.data_version)
    shuffled.save(tmp_path)
    SubscriptionGroupTable(chance.sample(list(groups.values()), len(groups)), groups.data_version).save(tmp_path)
    assert list(shuffled) != list(topics)
    for name in ("topics.json", "subscriptionGroup.json"):
        assert file_of(tmp_path, name).read_bytes() == file_of(store, name).read_bytes()


def test_the_topics_and_groups_that_every_broker_has_are_those_of_a_real_one(golden_store: PathOf) -> None:
    topics = TopicConfigTable.load(golden_store("offsets-4.9.4"))
    groups = SubscriptionGroupTable.load(golden_store("offsets-4.9.4"))
    assert {t: topics[t] for t in topics if not t.startswith(("fx_", "%RETRY%", "RMQ_SYS_TRANS"))} == {
        topic.topic_name: topic for topic in built_in_topics("DefaultCluster", "broker-a")
    }
    assert {g: groups[g] for g in groups if not g.startswith(("fx_", "CID_RMQ_SYS"))} == {
        group.group_name: group for group in built_in_groups()
    }


def test_what_the_file_says_takes_the_place_of_what_is_built_in(tmp_path: Path) -> None:
    mine = TopicConfig(topic_name="TBW102", write_queue_nums=3)
    TopicConfigTable([mine], DataVersion(timestamp=7, counter=2)).save(tmp_path)
    table = TopicConfigTable.load(tmp_path, built_in_topics("c", "b"))
    assert (table["TBW102"], table["BenchmarkTest"].read_queue_nums) == (mine, 1024)
    assert table.data_version == DataVersion(timestamp=7, counter=2)


def test_each_change_of_topics_and_groups_is_a_new_version() -> None:
    topics, groups = TopicConfigTable(), SubscriptionGroupTable()
    topics.put(TopicConfig(topic_name="T"), now=5)
    topics.put(replace(topics["T"], perm=4), now=6)
    topics.remove("none", now=7)
    assert (topics.data_version, topics["T"].is_writable) == (DataVersion(timestamp=6, counter=2), False)
    topics.remove("T", now=8)
    groups.put(SubscriptionGroupConfig(group_name="g"), now=9)
    assert (len(topics), topics.data_version.counter, groups.data_version.timestamp) == (0, 3, 9)


def test_fields_entries_and_members_that_are_not_known_are_kept(tmp_path: Path) -> None:
    text = """{"dataVersion":{"counter":1,"timestamp":2,"stateVersion":3},"later":[{"a":null}],"topicConfigTable":{
        "T":{"attributes":{"message.type":"FIFO"},"order":true},"U+":{"perm":7}}}"""
    (tmp_path / "config").mkdir()
    file_of(tmp_path, "topics.json").write_text(text)
    table = TopicConfigTable.load(tmp_path)
    table.put(replace(table["T"], write_queue_nums=2), now=9)
    table.save(tmp_path)
    again = TopicConfigTable.load(tmp_path)
    assert (again["T"].other, again["T"].order) == ({"attributes": {"message.type": "FIFO"}}, True)
    assert (again.other, again["U+"].perm, again.data_version.other) == (
        {"later": [{"a": None}]},
        7,
        {"stateVersion": 3},
    )


def test_a_key_that_is_no_topic_and_group_is_kept_but_is_none_of_the_offsets(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    file_of(tmp_path).write_text('{"offsetTable":{"a@b@c":{0:1},"alone":{0:2},"@g":{0:3},"T@g":{1:4,0:5}}}')
    table = ConsumerOffsetTable.load(tmp_path)
    assert {key: dict(queues) for key, queues in table.items()} == {("T", "g"): {0: 5, 1: 4}}
    assert ("a@b", "c") not in table
    table.remove_group("g")
    table.commit("U", "g", 3, 9)
    table.save(tmp_path)
    text = file_of(tmp_path).read_text()
    assert all(key in text for key in ('"a@b@c":{0:1', '"alone":{0:2', '"@g":{0:3', '"U@g":{3:9'))
    assert "T@g" not in text


@pytest.mark.parametrize("name", ["", "a@b", "a b", "a/b", "a\nb", "ä"])
def test_a_name_that_rocketmq_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="topic_name: expected letters"):
        TopicConfigTable().put(TopicConfig(topic_name=name), now=1)
    with pytest.raises(ArgumentError, match="group_name: expected letters"):
        SubscriptionGroupTable().put(SubscriptionGroupConfig(group_name=name), now=1)
    if "@" in name or not name:
        with pytest.raises(ArgumentError, match="expected names without '@'"):
            ConsumerOffsetTable().commit(name, "g", 0, 1)


@pytest.mark.parametrize("offset", [1 << 63, -(1 << 63) - 1, 1.5])
def test_an_offset_that_rocketmq_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path, offset: int) -> None:
    table = ConsumerOffsetTable()
    table.commit("T", "g", 0, offset)
    with pytest.raises(ArgumentError, match=r"offsetTable\.T@g\.0: expected an integer of 64 bits"):
        table.save(tmp_path)
    assert not file_of(tmp_path).exists()


def test_a_subscription_is_dead_after_a_restart_and_forgotten_after_a_day(golden_store: PathOf) -> None:
    table = ConsumerFilterTable.load(golden_store("offsets-4.9.4"))
    key = ("fx_plain", "fx_sql")
    now = table[key].dead_time
    assert table[key].dead
    table.put(replace(table[key], dead_time=0))
    assert not table[key].dead
    assert table.after_restart(now=now)[key].dead_time == max(now - 30_000, table[key].born_time)
    dead = table.after_restart(now=now)
    assert key in dead.without_dead(now=dead[key].dead_time + 86_399_999)
    assert key not in dead.without_dead(now=dead[key].dead_time + 86_400_000)
    assert key in table.without_dead(now=now * 2)


def test_without_a_file_there_are_the_defaults(tmp_path: Path) -> None:
    assert [len(table.load(tmp_path)) for table in TABLES] == [0] * len(TABLES)
    assert len(TopicConfigTable.load(tmp_path, built_in_topics("c", "b"))) == 8


UNREADABLE = {
    "nothing": b"",
    "white space": b" \n\t",
    "zeroes": bytes(100),
    "null": b"null",
    "a list": b"[]",
    "no table": b"{}",
    "another table": b'{"offsetTabld":{"T@g":{1:5}}}',
    "a table of another type": b'{"offsetTable":[]}',
    "no number": b'{"offsetTable":{"T@g":{1:NaN}}}',
    "a fraction": b'{"offsetTable":{"T@g":{1:5.5}}}',
    "a text": b'{"offsetTable":{"T@g":{1:"5"}}}',
    "a number that is too large": b'{"offsetTable":{"T@g":{1:99999999999999999999}}}',
    "a queue that is no number": b'{"offsetTable":{"T@g":{a:5}}}',
    "garbage behind it": b'{"offsetTable":{"T@g":{1:5}}}}',
    "zeroes behind it": b'{"offsetTable":{"T@g":{1:5}}}' + bytes(512),
    "another text behind it": b'{"offsetTable":{"T@g":{1:5}}}{"offsetTable":{}}',
    "no text of UTF-8": b'{"offsetTable":{"T\xff@g":{1:5}}}',
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_gives_its_backup_and_without_one_an_error(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    offsets(tmp_path, 1)
    offsets(tmp_path, 2)
    file_of(tmp_path).write_bytes(content)
    assert loaded(tmp_path) == 1
    assert "consumerOffset.json.bak was read instead" in caplog.text
    offsets(tmp_path, 3)
    assert loaded(tmp_path) == 3
    file_of(tmp_path).write_bytes(content)
    assert loaded(tmp_path) == 1, "garbage is no backup"
    for backup in (None, content):
        backup_of(tmp_path).unlink(missing_ok=True)
        if backup is not None:
            backup_of(tmp_path).write_bytes(backup)
        with pytest.raises(CorruptError, match=str(file_of(tmp_path))):
            loaded(tmp_path)
    assert file_of(tmp_path).read_bytes() == content


def test_a_missing_file_gives_its_backup_and_a_temporary_one_is_never_read(tmp_path: Path) -> None:
    offsets(tmp_path, 1)
    offsets(tmp_path, 2)
    file_of(tmp_path).rename(file_of(tmp_path, "consumerOffset.json.tmp"))
    assert loaded(tmp_path) == 1
    backup_of(tmp_path).unlink()
    assert loaded(tmp_path) is None


def test_a_file_longer_than_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    offsets(tmp_path, 1)
    with file_of(tmp_path).open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptError, match="at most 2147483647 bytes, got 1099511627776"):
        loaded(tmp_path)
    with file_of(tmp_path).open("r+b") as file:
        file.truncate(64 << 20)
    with pytest.raises(CorruptError, match="trailing characters"):
        loaded(tmp_path)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    os.mkfifo(file_of(tmp_path))
    with pytest.raises(CorruptError, match="expected a file"):
        loaded(tmp_path)
    file_of(tmp_path, "topics.json").mkdir()
    with pytest.raises(CorruptError, match="expected a file"):
        TopicConfigTable.load(tmp_path)
    with pytest.raises(CorruptError, match="expected a file"):
        TopicConfigTable().save(tmp_path)


def exchange(one: Path, other: Path) -> None:
    """Gives each the name of the other, as far as they are there."""
    moved = [(path, path.with_name(f"moved-{path.name}")) for path in (one, other) if path.exists()]
    for path, aside in moved:
        path.rename(aside)
    for path, aside in moved:
        aside.rename(other if path == one else one)


def test_whatever_is_swapped_and_damaged_between_saves_the_newest_sound_file_is_found(tmp_path: Path) -> None:
    chance = random.Random(3)
    names = [file_of(tmp_path), backup_of(tmp_path)]
    state: list[int | str] = ["none", "none"]  # of the file and of its backup: the generation, "none", "garbage"
    (tmp_path / "config").mkdir()
    for generation in range(1, 200):
        event, which = chance.choice(("save", "save", "exchange", "remove", "damage")), chance.randrange(2)
        if event == "save":
            offsets(tmp_path, generation)
            state = [generation, state[0] if isinstance(state[0], int) else state[1]]
        elif event == "exchange":
            exchange(*names)
            state.reverse()
        elif event == "remove":
            names[which].unlink(missing_ok=True)
            state[which] = "none"
        else:
            names[which].write_bytes(chance.randbytes(chance.randrange(50)))
            state[which] = "garbage"
        sound = [found for found in state if isinstance(found, int)]
        if not sound and "garbage" in state:
            with pytest.raises(CorruptError, match=r"consumerOffset\.json"):
                loaded(tmp_path)
        else:
            assert loaded(tmp_path) == (sound[0] if sound else None)


def test_a_store_tells_its_topics_and_the_offsets_of_its_groups(golden_store: PathOf) -> None:
    store = rmqfast.open_store(golden_store("offsets-4.9.4"))
    assert store.consumer_offsets()["fx_plain", "fx_sql"] == {0: 11, 1: 15, 2: 15, 3: 15}
    assert len(store.consumer_offsets()) == 13
    assert store.topic_configs()["%RETRY%fx_sql"].write_queue_nums == 1
    assert rmqfast.open_store(golden_store("basic-4.9.4")).consumer_offsets() == {}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_configuration_that_5_keeps_in_rocksdb_is_an_error_and_a_note(
    golden_store_copy: PathOf, version: str
) -> None:
    path = golden_store_copy("basic-5.3.3")
    names = {
        "topics.json": "topics",
        "consumerOffset.json": "consumerOffsets",
        "subscriptionGroup.json": "subscriptionGroups",
    }
    for file, directory in names.items():
        database = file_of(path, directory if version == "v1" else "rdb")
        database.mkdir(exist_ok=True)
        (database / "CURRENT").write_text("MANIFEST-000005\n")
        file_of(path, file).unlink()
        file_of(path, f"{file}.bak").unlink(missing_ok=True)
    store = rmqfast.open_store(path)
    step = "rocksDBConfigToJson -b BROKER" if version == "v1" else "rmqfast topic"
    for table, read in (("topics", store.topic_configs), ("consumerOffsets", store.consumer_offsets)):
        directory = table if version == "v1" else "rdb"
        with pytest.raises(UnsupportedStoreError, match=f"config/{directory}: .*RocksDB.*{step}"):
            read()
    notes = [note for note in store.info().notes if "RocksDB" in note]
    assert [name for name in names if any(name in note for note in notes)] == list(names)


def test_a_file_beside_such_a_database_is_taken_and_the_database_told(
    golden_store_copy: PathOf, caplog: pytest.LogCaptureFixture
) -> None:
    """`rocksDBConfigToJson` has a broker write one."""
    path = golden_store_copy("offsets-4.9.4")
    file_of(path, "consumerOffsets").mkdir()
    (file_of(path, "consumerOffsets") / "CURRENT").write_text("MANIFEST-000005\n")
    store = rmqfast.open_store(path)
    assert store.consumer_offsets()["fx_plain", "fx_orderly"] == {3: 12}
    assert "config/consumerOffsets: a broker of 5.x" in caplog.text
    [note] = store.verify().notes
    assert "the file, which may be older, is taken" in note
