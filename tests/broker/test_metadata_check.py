"""A check of a store looks into the broker's metadata database, also beside a broker that runs, and changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rmqfast
from rmqfast import VerifyReport
from rmqfast.broker import Broker
from rmqfast.errors import StoreIOError
from rmqfast.store.config import TopicConfig, TopicConfigTable
from tests.cli.command_line import run
from tests.embedded.client import broker_config
from tests.interop.rocketmq import create_topic
from tests.store.small_store import copy_open_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The store of a broker that was stopped."""
    with Broker(broker_config(tmp_path / "store")) as broker:
        create_topic(broker.address, "orders", 3)
    return tmp_path / "store"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The store of a broker that was killed: changes are in the log of its database."""
    with Broker(broker_config(tmp_path / "alive")) as broker:
        create_topic(broker.address, "orders", 3)
        broker.state.persist()
        copy_open_store(tmp_path / "alive", tmp_path / "killed")
    return tmp_path / "killed"


def check(root: Path) -> VerifyReport:
    before = contents(root)
    with rmqfast.open_store(root) as store:
        report = store.verify()
    assert contents(root) == before
    return report


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "config").iterdir()}


def problem(root: Path) -> str:
    """The one thing that is wrong, of the database."""
    [damage] = check(root).damage
    assert damage.file == str(root / "config" / "metadata.db")
    return damage.reason


def notes(root: Path) -> list[str]:
    """The notes on the database."""
    return [note for note in check(root).notes if "metadata.db" in note]


def test_the_database_of_a_broker_that_was_stopped_or_killed_is_sound(root: Path, killed: Path) -> None:
    for store in (root, killed):
        assert (check(store).damage, notes(store)) == ([], [])


def test_a_store_is_checked_beside_its_broker_which_goes_on(tmp_path: Path) -> None:
    with Broker(broker_config(tmp_path)) as broker:
        for number in range(20):
            create_topic(broker.address, f"orders-{number}", 3)
            with rmqfast.open_store(tmp_path) as store:
                assert store.verify().damage == []
        names = {path.name for path in (tmp_path / "config").iterdir()}
        assert names >= {"metadata.db", "metadata.db-wal", "metadata.db-count"}
        assert "metadata.db-shm" not in names
    assert "orders-19" in TopicConfigTable.load(tmp_path)


def test_a_flipped_bit_of_the_log_is_damage(killed: Path) -> None:
    path = killed / "config" / "metadata.db-wal"
    text = bytearray(path.read_bytes())
    text[text.index(b'"orders"') + 1] ^= 1
    path.write_bytes(text)
    assert problem(killed).endswith("; a broker that starts puts it aside, and reads RocketMQ's files")


def test_the_command_lists_a_row_that_contradicts_its_checksum(root: Path) -> None:
    path = root / "config" / "metadata.db"
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"orders"', b'"orderr"'))
    assert "'orders' of 'topics.json' contradicts its checksum" in problem(root)
    result = run("store", "verify", str(root))
    assert result.exit_code == 1
    assert "contradicts its checksum" in result.output


def test_a_log_that_is_lost_or_an_older_database_is_damage(killed: Path) -> None:
    database = killed / "config" / "metadata.db"
    os.truncate(database.with_name("metadata.db-wal"), 0)
    assert "missing or empty, and had " in problem(killed)
    database.with_name("metadata.db-wal").unlink()
    database.write_bytes(b"")
    assert "missing or empty, and had " in problem(killed)
    database.unlink()
    assert "missing or empty, and had " in problem(killed)


def test_an_older_database_is_damage(root: Path) -> None:
    database = root / "config" / "metadata.db"
    older = database.read_bytes()
    with Broker(broker_config(root)) as broker:
        create_topic(broker.address, "bills", 3)
    database.write_bytes(older)
    assert "its write-ahead log is lost, or an older one was put in its place" in problem(root)


def test_what_is_not_a_file_is_an_error_and_no_damage(root: Path) -> None:
    (root / "config" / "metadata.db").unlink()
    (root / "config" / "metadata.db").mkdir()
    with rmqfast.open_store(root) as store, pytest.raises(StoreIOError, match=r"(?i)is a directory.*metadata\.db"):
        store.verify()


def test_a_file_that_another_broker_wrote_is_a_note(root: Path) -> None:
    table = TopicConfigTable.load(root)
    table.put(TopicConfig(topic_name="bills"), now=1_800_000_000_000)
    table.save(root)
    path = root / "config" / "topics.json"
    text = f"{path}: another broker wrote it, or a person: rmqfast's next one takes it in place of what metadata.db has"
    assert (check(root).damage, notes(root)) == ([], [text])


def test_a_store_without_a_database_is_sound(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "store", mode="a"):
        pass
    assert rmqfast.open_store(tmp_path / "store").verify().damage == []


def test_a_table_with_another_name_is_damage(root: Path) -> None:
    database = root / "config" / "metadata.db"
    whole = database.read_bytes()
    # once as the table's name, once in the statement that made it
    harmed = whole.replace(b"entriesentries", b"entrietentriet").replace(
        b"CREATE TABLE entries", b"CREATE TABLE entriet"
    )
    assert harmed != whole
    database.write_bytes(harmed)
    assert problem(root).startswith("unknown tables: entriet, sums")
