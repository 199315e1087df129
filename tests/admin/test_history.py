"""What a watcher keeps of a cluster whose brokers keep no ledger, and what is explained by it."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from rmqfast import ClientConfig, EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin, Explanation, Outcome
from rmqfast.admin.history import HistoryWatcher
from rmqfast.admin.history.history_file import extent_of
from rmqfast.admin.history.stretches import stretches_of
from rmqfast.client.producer import Producer
from rmqfast.errors import ArgumentError, CorruptError, RmqError, StoreBusyError, StoreError, UnsupportedStoreError
from rmqfast.remoting import RemotingClient, RequestCode
from tests.cli.command_line import COMMAND, run
from tests.proxy import gated
from tests.waiting import PATIENCE, until

from .members import online, wants

CONFIG = {"messageDelayLevel": " ".join(["1s"] * 18), "pullLedgerEnable": "false", "enablePropertyFilter": "true"}
INTERVAL = 0.1


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(name_server=cluster.name_server) as running:
        yield running


class Shop:
    """A topic and a group of its own for each test, and their history."""

    def __init__(self, cluster: EmbeddedCluster, admin: Admin, producer: Producer, topic: str, path: Path) -> None:
        self.cluster, self.admin, self.producer, self.topic, self.path = cluster, admin, producer, topic, path
        self.group = f"{topic}_group"
        admin.create_topic(topic, queues=4)
        admin.create_group(self.group)

    def queues(self, *numbers: int) -> list[MessageQueue]:
        return [MessageQueue(self.topic, "broker-a", number) for number in numbers]

    def watch(self, config: ClientConfig | None = None, **more: Any) -> HistoryWatcher:
        config = config or ClientConfig(name_server=self.cluster.name_server)
        return HistoryWatcher(config, self.path, interval=INTERVAL, groups=[self.group], **more)

    def member(self, name: str, tags: str, queues: Sequence[int], version: int = 1, **more: Any) -> Any:
        own = [wants(self.topic, tags, version)]
        return online(self.cluster.name_server, name, self.group, own, self.queues(*queues), **more)

    def send(self, tags: str | None, number: int = 0) -> Any:
        sent = self.producer.send(Message(self.topic, b"x", tags), self.queues(number)[0])
        return self.admin.view_message(sent.offset_msg_id)

    def pass_all(self, offset: int, *numbers: int) -> None:
        """Moves the offsets as members do that consume."""
        for queue in self.queues(*numbers):
            self.admin.offsets.reset(self.group, queue, offset, force=True)

    def explain(self, message: Any) -> Explanation:
        return self.admin.explain(message, self.group, history=self.path)

    def settle(self, watcher: HistoryWatcher, members: int) -> None:
        """Waits until looks show so many members, and have shown them for a moment."""

        def is_settled() -> bool:
            stretches = stretches_of(self.path, self.group, self.queues(0)[0])
            is_seen = bool(stretches) and len(stretches[-1].group.members) == members
            return is_seen and stretches[-1].first + 300 < time.time() * 1000

        until(is_settled)
        look(watcher)


def look(watcher: HistoryWatcher) -> None:
    """Waits for a look that began after the call."""
    looks = watcher.looks
    until(lambda: watcher.looks >= looks + 2)


@pytest.fixture
def shop(cluster: EmbeddedCluster, admin: Admin, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    topic = str(request.node.originalname).removeprefix("test_")[:50]
    with Producer("history_tests", name_server=cluster.name_server) as producer:
        yield Shop(cluster, admin, producer, topic, tmp_path / "shop.history")


def test_what_two_members_with_different_tags_lost_is_known_after_they_left(shop: Shop) -> None:
    """Article 004: C1 wants TagA, C2 wants TagB and comes last; each has two queues; messages of TagB."""
    with shop.watch() as watcher:
        with shop.member("C1", "TagA", (0, 1), 1), shop.member("C2", "TagB", (2, 3), 2):
            shop.settle(watcher, 2)
            messages = [shop.send("TagB", number % 4) for number in range(8)]
            other = shop.send("TagA", 2)
            look(watcher)
            shop.pass_all(3, 0, 1, 2, 3)
            look(watcher)
        shop.settle(watcher, 0)
        told = [shop.explain(message) for message in messages]
    assert {shop.admin.explain(message, shop.group).outcome for message in messages} == {Outcome.UNKNOWN}
    assert [each.outcome for each in told] == [Outcome.LOST, Outcome.LOST, Outcome.CONSUMED, Outcome.CONSUMED] * 2
    first = told[0]
    assert first.sampled is not None
    assert first.sampled[0] < messages[0].store_timestamp < first.sampled[1]
    assert first.sentence.startswith("as sampled between 20")
    assert first.sentence.endswith(
        "passed by the offset, delivered to 10.0.0.1@C1, dropped by 10.0.0.1@C1's tag check: nobody processed it"
    )
    assert (first.member, told[2].member) == ("10.0.0.1@C1", "10.0.0.1@C2")
    assert first.next_step is not None
    assert first.next_step.startswith("give all members of the group")
    assert first.has_problem
    lost = shop.explain(other)
    assert lost.outcome is Outcome.LOST
    assert "though 10.0.0.1@C1 subscribed to it" in lost.sentence


def test_messages_of_sql_members_are_evaluated_by_the_broker(shop: Shop) -> None:
    with shop.watch() as watcher:
        own = wants(shop.topic, "*")
        sql = type(own)(topic=shop.topic, sub_string="TAGS = 'TagA'", expression_type="SQL92", sub_version=1)
        with online(shop.cluster.name_server, "S", shop.group, [sql], shop.queues(0, 1, 2, 3)):
            shop.settle(watcher, 1)
            messages = [shop.send("TagA"), shop.send("TagB")]
            shop.pass_all(2, 0)
            look(watcher)
        shop.settle(watcher, 0)
    told = [shop.explain(message) for message in messages]
    assert [each.outcome for each in told] == [Outcome.CONSUMED, Outcome.FILTERED]
    assert "(TAGS is 'TagA')" in told[0].sentence


def test_an_offset_that_moves_while_nobody_is_online_skips(shop: Shop) -> None:
    shop.pass_all(0, 0)
    with shop.watch() as watcher:
        shop.settle(watcher, 0)
        message = shop.send("TagA")
        look(watcher)
        shop.pass_all(1, 0)
        look(watcher)
        told = shop.explain(message)
        assert told.outcome is Outcome.SKIPPED
        assert told.sentence.endswith(
            "nobody was handed it: the offset was moved over it from 0 while nobody was online"
        )
        # set back, and consumed
        shop.pass_all(0, 0)
        look(watcher)
        with shop.member("B", "TagA", (0,)):
            shop.settle(watcher, 1)
            shop.pass_all(1, 0)
            look(watcher)
        assert shop.explain(message).outcome is Outcome.CONSUMED


def test_a_reset_of_members_is_not_taken_for_consumption(shop: Shop) -> None:
    """Members give their queues up, and take them back with a new version of the subscription."""
    shop.pass_all(0, 0)
    with shop.watch() as watcher:
        with shop.member("R", "TagA", (0,), 1):
            shop.settle(watcher, 1)
            message = shop.send("TagA")
            look(watcher)
        with ExitStack() as stack:
            stack.enter_context(shop.member("R", "TagA", (), 1))
            shop.settle(watcher, 1)
            shop.pass_all(1, 0)
            stack.close()
            with shop.member("R", "TagA", (0,), 2):
                shop.settle(watcher, 1)
        told = shop.explain(message)
    assert (told.outcome, told.sampled) == (Outcome.UNKNOWN, None)


def test_a_reset_that_no_look_sees_takes_back_all_but_consumption(shop: Shop) -> None:
    """The offset goes back, and forward again, between two looks: only the queues tell that members were told of it."""
    shop.pass_all(0, 0)
    with shop.watch() as watcher:
        with shop.member("R", "TagA", (0,), 1):
            shop.settle(watcher, 1)
            messages = [shop.send("TagA"), shop.send("TagB")]
            shop.pass_all(2, 0)
            look(watcher)
            before = [shop.explain(message).outcome for message in messages]
        with shop.member("R", "TagA", (), 1):
            shop.settle(watcher, 1)
        with shop.member("R", "TagB", (0,), 2):
            shop.settle(watcher, 1)
        after = [shop.explain(message).outcome for message in messages]
    assert before == [Outcome.CONSUMED, Outcome.FILTERED]
    assert after == [Outcome.CONSUMED, Outcome.UNKNOWN]


def test_a_message_that_waited_for_members_is_decided_if_all_agree(shop: Shop) -> None:
    shop.pass_all(0, 0)
    with shop.watch() as watcher:
        shop.settle(watcher, 0)
        messages = [shop.send(tag) for tag in ("TagA", "TagB", "TagC")]
        look(watcher)
        with ExitStack() as stack:
            # One after the other: where several come between two looks, others may have come and gone.
            for number, tags in enumerate(("TagA", "TagA || TagB")):
                stack.enter_context(shop.member(f"M{number}", tags, (number,), number + 1))
                shop.settle(watcher, number + 1)
            shop.pass_all(3, 0)
            look(watcher)
        shop.settle(watcher, 0)
    told = [shop.explain(message) for message in messages]
    assert [each.outcome for each in told] == [Outcome.CONSUMED, Outcome.UNKNOWN, Outcome.FILTERED]
    assert told[0].sentence.endswith(
        "delivered to a member, as all members wanted TagA or TagA || TagB, and never sent back"
    )
    assert told[0].member is None


def test_a_copy_is_judged_at_its_own_place(shop: Shop) -> None:
    shop.pass_all(0, 0)
    retry = f"%RETRY%{shop.group}"
    own = [wants(shop.topic, "TagA"), wants(retry, "*")]
    queues = [*shop.queues(0), MessageQueue(retry, "broker-a", 0)]
    with shop.watch() as watcher:
        with online(shop.cluster.name_server, "R", shop.group, own, queues):
            shop.settle(watcher, 1)
            message = shop.send("TagA")
            fields = {
                "group": shop.group,
                "originTopic": shop.topic,
                "offset": message.physical_offset,
                "delayLevel": 1,
            }
            with RemotingClient(shop.cluster.brokers[0].address, timeout=PATIENCE) as client:
                client.ask(RequestCode.CONSUMER_SEND_MSG_BACK, {name: str(each) for name, each in fields.items()})
            shop.pass_all(1, 0)
            until(lambda: "waits in" in shop.explain(message).sentence)
            shop.admin.offsets.reset(shop.group, queues[1], 1, force=True)
            look(watcher)
        shop.settle(watcher, 0)
    assert shop.admin.explain(message, shop.group).outcome is Outcome.UNKNOWN
    told = shop.explain(message)
    assert told.outcome is Outcome.CONSUMED
    assert told.sentence.endswith(f"that is its last copy, {retry} queue 0 offset 0")


def test_a_group_is_seen_among_many_that_are_idle(shop: Shop) -> None:
    for number in range(60):
        shop.admin.create_group(f"idle_{number}")
    shop.pass_all(0, 0)
    config = ClientConfig(name_server=shop.cluster.name_server)
    with HistoryWatcher(config, shop.path, interval=INTERVAL) as watcher:
        look(watcher)
        with shop.member("A", "TagA", (0,)):
            shop.settle(watcher, 1)
        shop.settle(watcher, 0)
    assert extent_of(shop.path).groups > 60


def test_nothing_is_concluded_over_a_gap(shop: Shop) -> None:
    shop.pass_all(0, 0)
    with (
        gated(shop.cluster) as (gate, config),
        shop.member("G", "TagA", (0, 1, 2, 3)),
        shop.watch(config, timeout=1) as watcher,
    ):
        shop.settle(watcher, 1)
        message = shop.send("TagA")
        look(watcher)
        gate.down()
        until(lambda: watcher.problems)
        assert any("broker-a at" in problem for problem in watcher.problems)
        shop.pass_all(1, 0)
        gate.up()
        until(lambda: not watcher.problems)
        shop.settle(watcher, 1)
        behind = shop.send("TagA")
        shop.pass_all(2, 0)
        look(watcher)
    assert len({each.run for each in stretches_of(shop.path, shop.group, shop.queues(0)[0])}) == 2
    assert shop.explain(message).outcome is Outcome.UNKNOWN
    assert shop.explain(behind).outcome is Outcome.CONSUMED


def test_a_file_is_continued_with_a_gap(shop: Shop) -> None:
    with shop.member("A", "TagA", (0, 1, 2, 3)):
        with shop.watch() as watcher:
            shop.settle(watcher, 1)
            message = shop.send("TagA")
            look(watcher)
        assert {each.name for each in shop.path.parent.iterdir()} == {"shop.history", "shop.history.lock"}
        shop.pass_all(1, 0)
        with shop.watch() as watcher:
            look(watcher)
    assert shop.explain(message).outcome is Outcome.UNKNOWN
    assert len({each.run for each in stretches_of(shop.path, shop.group, shop.queues(0)[0])}) == 2


def test_a_member_that_does_not_answer_leaves_open_what_it_wanted(shop: Shop) -> None:
    def refuse() -> dict[str, Any]:
        raise RuntimeError("expected by the test")

    with shop.watch() as watcher, shop.member("M", "TagA", (0,), running_info=refuse):
        shop.settle(watcher, 1)
        until(lambda: any("10.0.0.1@M does not tell" in problem for problem in watcher.problems))
        message = shop.send("TagA")
        shop.pass_all(1, 0)
        look(watcher)
    assert shop.explain(message).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("version", "outcome"), [(0, Outcome.UNKNOWN), (1, Outcome.CONSUMED)], ids=["pull", "lite"])
def test_pull_consumers_filter_unseen_and_lite_ones_by_their_subscription(
    shop: Shop, version: int, outcome: Outcome
) -> None:
    with shop.watch() as watcher:
        offset = shop.send("TagA").queue_offset + 1
        with shop.member("L", "*", (), version, consume_type="CONSUME_ACTIVELY"):
            shop.settle(watcher, 1)
            message = shop.send("TagA")
            shop.pass_all(offset + 1, 0)
            look(watcher)
        assert shop.explain(message).outcome is outcome


def test_a_broadcast_is_one_after_its_members_have_left(shop: Shop) -> None:
    with shop.watch() as watcher:
        with shop.member("B", "*", (0, 1, 2, 3), message_model="BROADCASTING"):
            shop.settle(watcher, 1)
            message = shop.send("TagA")
        look(watcher)
    assert shop.admin.explain(message, shop.group).outcome is Outcome.UNKNOWN
    assert shop.explain(message).outcome is Outcome.BROADCASTING


def test_old_rows_are_removed_and_prove_nothing_more(shop: Shop) -> None:
    with shop.watch() as watcher:
        with shop.member("A", "TagA", (0, 1, 2, 3)):
            shop.settle(watcher, 1)
            message = shop.send("TagA")
            shop.pass_all(1, 0)
            look(watcher)
        shop.settle(watcher, 0)
    assert shop.explain(message).outcome is Outcome.CONSUMED
    before = extent_of(shop.path)
    with shop.watch(max_rows=1) as watcher:
        look(watcher)
    after = extent_of(shop.path)
    assert after.rows < before.rows
    assert before.since is not None
    assert after.since is not None
    assert after.since > before.since
    assert shop.explain(message).outcome is Outcome.UNKNOWN
    with shop.watch(max_age=0.001) as watcher:
        look(watcher)
    assert extent_of(shop.path).rows <= 2


def test_one_watcher_writes_a_file(shop: Shop) -> None:
    with shop.watch(), pytest.raises(StoreBusyError, match=r"shop.history: another watcher writes to it"):
        shop.watch().start()
    with shop.watch():
        pass


def database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)


def test_a_file_that_is_no_history_is_refused(shop: Shop, tmp_path: Path) -> None:
    message = shop.send("TagA")
    shop.pass_all(1, 0)
    config = ClientConfig(name_server=shop.cluster.name_server)
    garbage, other, newer = tmp_path / "garbage", tmp_path / "other", tmp_path / "newer"
    garbage.write_bytes(b"no database" * 1000)
    database(other, "CREATE TABLE t (x)")
    with HistoryWatcher(config, newer):
        pass
    database(newer, "PRAGMA user_version = 99")
    cases: list[tuple[Path, type[StoreError], str]] = [
        (garbage, CorruptError, "garbage: expected a history of `rmqfast watch`, got: file is not a database"),
        (other, UnsupportedStoreError, "other: expected a history of `rmqfast watch`, got another database"),
        (newer, UnsupportedStoreError, "newer: expected a history of version 1, got version 99"),
    ]
    for path, kind, text in cases:
        with pytest.raises(kind, match=text):
            shop.admin.explain(message, shop.group, history=path)
        with pytest.raises(kind, match=text):
            HistoryWatcher(config, path).start()
    with pytest.raises(StoreError, match="got no such file"):
        shop.admin.explain(message, shop.group, history=tmp_path / "nothing")
    with pytest.raises(StoreError):
        HistoryWatcher(config, tmp_path / "nowhere" / "x").start()


def test_a_hostile_history_is_an_error(shop: Shop) -> None:
    with shop.watch() as watcher, shop.member("A", "TagA", (0,)):
        shop.settle(watcher, 1)
        message = shop.send("TagA")
        shop.pass_all(1, 0)
        look(watcher)
    for change in ("UPDATE texts SET text = '[' WHERE text LIKE '{%'", "UPDATE facts SET first_ms = 'x'"):
        database(shop.path, change)
        with pytest.raises(CorruptError, match=r"shop.history: expected rows of group"):
            shop.explain(message)
    database(shop.path, "DROP TABLE offsets")
    with pytest.raises(StoreError, match=r"shop.history: .*no such table"):
        shop.explain(message)


def test_a_history_is_for_messages(shop: Shop) -> None:
    for what in (shop.group, shop.queues(0)[0]):
        with pytest.raises(ArgumentError, match="history: expected a message"):
            shop.admin.explain(what, history=shop.path)


def test_no_name_server_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(RmqError), HistoryWatcher(ClientConfig(name_server="127.0.0.1:1"), tmp_path / "x", timeout=1):
        pass


def test_the_commands_write_and_read_a_history(shop: Shop) -> None:
    server = shop.cluster.name_server
    command = [*COMMAND, "watch", "-n", server, "--out", str(shop.path), "--interval", "0.1", "--group", shop.group]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == f"ready history={shop.path}\n"
        with shop.member("A", "TagA", (0, 1, 2, 3)):
            until(lambda: stretches_of(shop.path, shop.group, shop.queues(0)[0])[-1:])
            until(lambda: stretches_of(shop.path, shop.group, shop.queues(0)[0])[-1].first + 300 < time.time() * 1000)
            message = shop.send("TagB")
            shop.pass_all(1, 0)
            until(lambda: stretches_of(shop.path, shop.group, shop.queues(0)[0])[-1].stop == 1)
        process.send_signal(signal.SIGTERM)
        kept, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert kept.startswith(f"{shop.path}: 1 groups, ")
    place = ["--topic", shop.topic, "--queue", "0", "--offset", "0", "--group", shop.group, "-n", server]
    told = run("explain", *place, "--history", shop.path)
    assert "FILTERED: as sampled between 20" in told.stdout
    row = json.loads(run("explain", *place, "--history", shop.path, "-o", "jsonl").stdout)
    assert (row["outcome"], row["is_sampled"]) == ("FILTERED", True)
    assert run("explain", *place, "--history", "nothing").exit_code == 3
    assert message.queue_offset == 0
