"""The commands of `docs/cli.md` run as they stand; `pip` is left out."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rmqfast import (
    Admin,
    AppendOptions,
    ClientConfig,
    ConsumeConcurrentlyStatus,
    EmbeddedCluster,
    Message,
    MessageQueue,
    Producer,
    PushConsumer,
    open_store,
)
from tests.admin.members import is_newest_kept, is_settled, online_members
from tests.cli.terminal import Terminal
from tests.cli.test_server import end, serving
from tests.examples.documents import blocks_of
from tests.examples.readers_shell import ReadersShell, line_with, sh_blocks
from tests.waiting import until

pytestmark = pytest.mark.long
DOCUMENT = "cli.md"
PROMPT = "ready>"
SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)
#: The reader's store: when it was stored, and what.
STORED = (
    ("2026-11-21T08:59", Message("orders", b"early", tags="paid", keys="1")),
    ("2026-11-21T09:00", Message("orders", b"a", tags="paid", keys="42", properties={"amount": "101", "region": "eu"})),
    ("2026-11-21T09:01", Message("orders", b"b", tags="shipped", properties={"amount": "100", "region": "eu"})),
    ("2026-11-21T09:02", Message("orders", b"c", tags="cancelled", properties={"amount": "500", "region": "us"})),
    ("2026-11-21T09:03", Message("payments", b"d", tags="card")),
    ("2026-11-21T09:04", Message("clicks", b"e", tags="paid")),
)
PIP, STORE, COMPLETION, WATCH, PROFILES, CLUSTER, EXPORT, INGEST = sh_blocks(DOCUMENT)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The reader's, with a store in it."""
    at = 0
    with open_store(tmp_path / "store", mode="a", options=SMALL, clock=lambda: at) as store:
        for time_of_day, message in STORED:
            at = int(datetime.fromisoformat(time_of_day).replace(tzinfo=UTC).timestamp() * 1000)
            store.append(message)
    return tmp_path


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """The topic `orders` and a group that consumes it."""
    with EmbeddedCluster() as running:
        with Admin(name_server=running.name_server) as admin:
            admin.create_topic("orders", queues=1)
            admin.create_group("cashiers")
        yield running


def bodies(printed: str) -> list[bytes]:
    """Those of JSON lines."""
    return [base64.b64decode(json.loads(line)["body"]) for line in printed.splitlines()]


def test_each_command_is_of_one_of_the_tests() -> None:
    assert [len(block) for block in sh_blocks(DOCUMENT)] == [0, 6, 3, 2, 2, 4, 3, 2]
    assert PIP == []
    assert [block.language for block in blocks_of(DOCUMENT) if block.language != "sh"] == ["toml"]


def test_the_commands_of_stores_print_and_write_what_they_say(home: Path) -> None:
    shell = ReadersShell(home, {"/lake": f"{home}/lake"})
    by_tag, by_sql, to_file, tail, by_key, ingest = STORE
    assert [row.split()[0] for row in shell.run(by_tag).splitlines()[1:]] == ["orders", "orders"]
    assert bodies(shell.run(by_sql)) == [b"a"]
    assert shell.run(to_file) == ""
    assert (home / "orders.csv").read_text().splitlines() == [
        "queue_id,queue_offset,keys",
        "0,0,1",
        "0,1,42",
        "0,2,",
        "0,3,",
    ]
    with shell.started(tail) as process:
        line_with(process, '"queue_offset":0')
        assert bodies(line_with(process, '"queue_offset":1')) == [b"a"]
        with open_store(home / "store", mode="a", options=SMALL) as store:
            store.append(Message("orders", b"other", tags="shipped"))
            store.append(Message("orders", b"later", tags="paid"))
        assert bodies(line_with(process, '"queue_offset":5')) == [b"later"]
    assert "42" in shell.run(by_key)
    (summary,) = json.loads(shell.run(ingest))
    assert summary["rows"] == 7
    days = {path.relative_to(home / "lake/rocketmq").parts[:2] for path in (home / "lake").rglob("*.parquet")}
    assert ("day=2026-11-21", "topic=payments") in days
    assert {topic for _, topic in days} == {"topic=orders", "topic=payments"}


def test_an_ingest_writes_only_what_is_new(home: Path) -> None:
    shell = ReadersShell(home, {"/lake": f"{home}/lake"})
    assert [json.loads(shell.run(f"{command} -o json"))[0]["rows"] for command in INGEST] == [4, 0]
    assert DeltaTable(home / "lake/orders").count() == 4


def test_a_bash_completes_the_lines_with_a_tab(home: Path, cluster: EmbeddedCluster) -> None:
    shell = ReadersShell(home, {})
    install, of_cluster, of_store = COMPLETION
    with Terminal.of(["bash", "--noprofile", "--norc", "-i"], shell.environment | {"PS1": PROMPT}) as terminal:

        def type_in(line: str) -> None:
            terminal.read_until(PROMPT)
            terminal.type(line)

        type_in(f"cd; {install}\n")
        terminal.read_until("bash completion installed")
        type_in("source ~/.bashrc\n")
        type_in(of_cluster.replace("10.0.0.1:9876", cluster.name_server).replace("<TAB>", "\t"))
        terminal.read_until("orders ")
        terminal.type("\n")
        type_in(of_store.replace("<TAB>", "\t\t"))
        terminal.read_until("clicks")
        terminal.read_until("payments")


def test_a_watch_goes_on_until_ctrl_c(home: Path, cluster: EmbeddedCluster) -> None:
    shell = ReadersShell(home, {})
    shell.environment["NAMESRV_ADDR"] = cluster.name_server
    with Admin(name_server=cluster.name_server) as admin:
        admin.offsets.reset("cashiers", MessageQueue("orders", "broker-a", 0), 0, force=True)
    group, store = WATCH
    with shell.started(group) as process:
        line_with(process, "orders")
        line_with(process, "orders")
    with shell.started(store) as process:
        assert json.loads(line_with(process, "payments"))["topic"] == "payments"


def test_a_profile_is_read_and_its_file_is_the_owners_alone(tmp_path: Path) -> None:
    (profiles,) = (block.code for block in blocks_of(DOCUMENT) if block.language == "toml")
    secured, file = tmp_path / "secured", tmp_path / ".config/rmqfast.toml"
    with serving("server", "--secure", secured, "--namesrv-port", 0, "--broker-port", 0) as (process, told):
        accounts = (secured / "conf/plain_acl.yml").read_text()
        secret = re.findall(r"accessKey: administrator\s+secretKey: (\S+)", accounts)[0]
        shell = ReadersShell(tmp_path, {})
        file.parent.mkdir()
        file.write_text(
            profiles.replace('"10.0.0.1:9876;10.0.0.2:9876"', f'"{told["name_server"]};{told["name_server"]}"')
            .replace("orders-team", "administrator")
            .replace('"..."', f'"{secret}"')
        )
        shutil.copy(secured / "ca.pem", file.parent)
        file.chmod(0o644)
        narrow, topics = PROFILES
        assert shell.run(narrow) == ""
        assert file.stat().st_mode & 0o777 == 0o600
        assert "TBW102" in shell.run(topics)
        end(process)


def test_the_commands_of_clusters_explain_a_lost_message(home: Path, cluster: EmbeddedCluster) -> None:
    shell = ReadersShell(home, {"127.0.0.1:9876": cluster.name_server})
    produce, explain, reset, consume = CLUSTER
    (shown,) = (block.printed for block in blocks_of(DOCUMENT) if explain in block.code)
    with Admin(name_server=cluster.name_server) as admin, member(cluster, "C1", "TagA"):
        until(lambda: is_settled(admin, "cashiers", "orders"))
        # the broker keeps the subscription of the later member, and the earlier one has the queue
        with member(cluster, "C2", "TagB"):
            until(lambda: len(online_members(admin, "cashiers")) == 2 and is_newest_kept(admin, "cashiers", "orders"))
            assert admin.groups.connections("cashiers").subscriptions["orders"].sub_string == "TagB"
            shell.run(produce)
            with Producer("others", name_server=cluster.name_server) as producer:
                producer.send_many([Message("orders", b"%d" % number) for number in range(9)])
            until(lambda: [row.consumer_offset for row in admin.groups.progress("cashiers", "orders")] == [10])
            # a message that is lost is exit code 1
            assert masked(shell.run(explain, code=1)) == masked(shown)
    assert shell.run(reset).splitlines()[-1].split() == ["orders", "broker-a", "0", "0"]
    consumed = [json.loads(line) for line in shell.run(consume).splitlines()]
    assert len(consumed) == 10
    assert (consumed[0]["tags"], consumed[0]["keys"]) == ("TagB", "42")


@contextmanager
def member(cluster: EmbeddedCluster, name: str, tag: str) -> Iterator[None]:
    """A consumer of the group `cashiers` while the block runs."""
    config = ClientConfig(
        name_server=cluster.name_server,
        instance_name=name,
        client_ip="10.0.0.1",
        persist_offset_interval=0.1,
        rebalance_interval=0.5,
        heartbeat_interval=0.5,
    )
    consumer = PushConsumer("cashiers", config=config)
    consumer.subscribe("orders", tag)
    consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    with consumer:
        yield


def masked(text: str) -> str:
    """What is printed, without ids and times."""
    text = re.sub("message [0-9A-F]{32}", "message C0A80001...", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", "TIME", text)
    # of one pull, or of several
    return re.sub("at TIMEZ|between TIMEZ and TIMEZ", "WHEN", text)


def test_an_export_is_a_store_or_json_lines(home: Path) -> None:
    shell = ReadersShell(home, {})
    to_store, to_file, to_output = EXPORT
    shell.run(to_store)
    with open_store(home / "slice") as exported:
        assert set(exported.topics()) == {"orders", "payments"}
        assert exported.scan().to_arrow()["body"].to_pylist() == [b"a", b"b", b"c", b"d"]
    shell.run(to_file)
    assert [json.loads(line)["keys"] for line in (home / "orders.jsonl").read_text().splitlines()] == ["1", "42"]
    assert bodies(shell.run(to_output)) == [b"a"]
    assert not list(home.glob("*.partial"))
