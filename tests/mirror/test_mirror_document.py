"""The commands and the code of `docs/mirror.md` run as they stand, beside a cluster of this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster, open_store
from tests.examples.documents import blocks_of
from tests.examples.readers_shell import ReadersShell, line_with, sh_blocks
from tests.mirror.copies import SMALL, rows_of, send
from tests.waiting import until

pytestmark = pytest.mark.long
DOCUMENT = "mirror.md"
WHOLE, SOME_TOPICS = sh_blocks(DOCUMENT)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Three topics with three messages each."""
    with EmbeddedCluster(config=dict(line.split("=") for line in SMALL)) as running:
        for topic in ("orders", "payments", "clicks"):
            send(running.name_server, topic, [b"%s %d" % (topic.encode(), number) for number in range(3)])
        yield running


@pytest.fixture
def shell(cluster: EmbeddedCluster, tmp_path: Path) -> ReadersShell:
    return ReadersShell(tmp_path, {"127.0.0.1:9876": cluster.name_server})


def count_of(store: Path, topic: str) -> int:
    return len(rows_of(store, topic)) if (store / "mirror.json").exists() else 0


def test_each_command_and_block_is_of_one_of_the_tests() -> None:
    assert [len(block) for block in sh_blocks(DOCUMENT)] == [3, 3]
    assert sum(block.language != "sh" for block in blocks_of(DOCUMENT)) == 1


def test_a_copy_follows_is_read_beside_it_and_goes_on_later(
    cluster: EmbeddedCluster, shell: ReadersShell, tmp_path: Path
) -> None:
    copy = tmp_path / "copies/broker-a"
    follow, tail, once = WHOLE
    with shell.started(follow) as mirror:
        line_with(mirror, "broker-a")
        until(lambda: count_of(copy, "clicks") >= 3)
        with shell.started(tail) as reader:
            line_with(reader, "clicks 2")
            send(cluster.name_server, "orders", [b"while it follows"])
            line_with(reader, "while it follows")
    send(cluster.name_server, "orders", [b"meanwhile"])
    assert "broker-a" in shell.run(once)
    store = Path(cluster.brokers[0].config.text("storePathRootDir"))
    assert rows_of(copy, "orders") == rows_of(store, "orders")
    assert b"meanwhile" in [row["body"] for row in rows_of(copy, "orders")]


def test_a_program_gets_how_far_the_copy_is(shell: ReadersShell, tmp_path: Path) -> None:
    (program,) = (block.code for block in blocks_of(DOCUMENT) if block.language == "python")
    assert re.fullmatch(r"broker-a \w+ \d+ (None|\d+\.\d+)\n", shell.python(program))
    assert (tmp_path / "copies").is_dir()


def test_a_copy_of_some_topics_has_those_alone(shell: ReadersShell, tmp_path: Path) -> None:
    copy = tmp_path / "copies/broker-a"
    follow, info, verify = SOME_TOPICS
    with shell.started(follow) as mirror:
        line_with(mirror, "broker-a")
        until(lambda: min(count_of(copy, "orders"), count_of(copy, "payments")) >= 3)
    printed = shell.run(info)
    assert "orders" in printed
    assert "payments" in printed
    assert "clicks" not in printed
    shell.run(verify)
    with open_store(copy) as store:
        assert set(store.topics()) == {"orders", "payments"}
