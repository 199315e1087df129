"""`rmqfast topic`, `group`, `message`, `cluster`, `explain` and `produce`, against a broker in this process."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.cli.app import app
from rmqfast.cli.endings import exit_code
from rmqfast.client.producer import Producer
from rmqfast.client.pull import PullConsumer
from rmqfast.errors import ClientError
from tests.admin.members import online, wants
from tests.cli.command_line import COMMAND, run, run_process
from tests.torn import send_torn
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


def told(cluster: EmbeddedCluster, *words: str, code: int = 0) -> Any:
    """What a command says in JSON."""
    result = run(*words, "-n", cluster.name_server, "-o", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def done(cluster: EmbeddedCluster, *words: str, code: int = 0) -> str:
    """What a command without a form of output says."""
    result = run(*words, "-n", cluster.name_server)
    assert result.exit_code == code, result.output
    return result.output


def test_a_topic_is_made_listed_shown_and_removed(cluster: EmbeddedCluster) -> None:
    done(cluster, "topic", "create", "cli_made", "--queues", "2")
    made = {"topic": "cli_made", "brokers": ["broker-a"], "read_queues": 2, "write_queues": 2, "perm": 6}
    assert made in told(cluster, "topic", "list")
    rows = told(cluster, "topic", "show", "cli_made")
    assert [(row["broker_name"], row["queue_id"], row["max_offset"]) for row in rows] == [
        ("broker-a", 0, 0),
        ("broker-a", 1, 0),
    ]
    said = done(cluster, "topic", "delete", "cli_made", code=1)
    assert "nothing was changed: cli_made has 0 messages in 2 queues; --yes removes it" in said
    done(cluster, "topic", "delete", "cli_made", "--yes")
    assert "cli_made" not in [row["topic"] for row in told(cluster, "topic", "list", "--all")]


def test_messages_are_sent_and_shown_by_id_key_and_place(cluster: EmbeddedCluster) -> None:
    done(cluster, "topic", "create", "cli_sent", "--queues", "1")
    words = ("produce", "cli_sent", "one", "two", "--tags", "t", "--key", "k1", "--property", "a=b=c")
    sent = told(cluster, *words)
    assert [(row["queue_id"], row["queue_offset"], row["status"]) for row in sent] == [
        (0, 0, "SEND_OK"),
        (0, 1, "SEND_OK"),
    ]
    (row,) = told(cluster, "message", "show", "--id", sent[1]["offset_msg_id"])
    assert (row["body"], row["tags"], row["msg_id"], row["properties"]["a"]) == ("dHdv", "t", sent[1]["msg_id"], "b=c")
    assert told(cluster, "message", "show", "--id", sent[1]["msg_id"], "--topic", "cli_sent") == [row]
    assert told(cluster, "message", "show", "--topic", "cli_sent", "--queue", "0", "--offset", "1") == [row]
    assert len(told(cluster, "message", "show", "--topic", "cli_sent", "--key", "k1")) == 2
    assert "no message of cli_sent has the key k2" in done(
        cluster, "message", "show", "--topic", "cli_sent", "--key", "k2", code=1
    )
    assert "has no message at offset 9" in done(
        cluster, "message", "show", "--topic", "cli_sent", "--queue", "0", "--offset", "9", code=1
    )


def test_lines_of_standard_input_are_messages(cluster: EmbeddedCluster) -> None:
    words = ["produce", "cli_lines", "--create", "-n", cluster.name_server, "--ordered", "k", "-o", "jsonl"]
    result = CliRunner().invoke(app, words, input="one\ntwo\n\n")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 2, result.output  # the third line is empty, and no broker takes an empty body
    assert [row["queue_offset"] for row in rows] == [0, 1]
    assert len({row["queue_id"] for row in rows}) == 1
    assert "line 3 of standard input" in result.stderr


def test_all_lines_are_sent_though_nobody_reads_what_is_printed(cluster: EmbeddedCluster) -> None:
    done(cluster, "topic", "create", "cli_head", "--queues", "1")
    words = [*COMMAND, "produce", "cli_head", "-n", cluster.name_server, "-o", "jsonl"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate(b"".join(b"%d\n" % n for n in range(200)))
    assert (said, process.returncode) == (b"", 0)
    (row,) = told(cluster, "topic", "show", "cli_head")
    assert row["max_offset"] == 200


def test_messages_are_consumed_and_the_group_goes_on_behind_those_that_were_printed(cluster: EmbeddedCluster) -> None:
    topic = "cli_consumed"
    done(cluster, "topic", "create", topic, "--queues", "1")
    told(cluster, "produce", topic, "a", "b", "c", "--tags", "t")
    words = ("consume", topic, "--group", "cli_eaters", "--from", "first", "--columns", "queue_offset,body")
    assert told(cluster, *words, "--max", "2") == [
        {"queue_offset": 0, "body": "YQ=="},
        {"queue_offset": 1, "body": "Yg=="},
    ]
    assert told(cluster, *words, "--max", "1") == [{"queue_offset": 2, "body": "Yw=="}]
    assert told(cluster, *words, "--idle", "0.1") == []
    with Admin(name_server=cluster.name_server) as admin:
        assert admin.groups.progress("cli_eaters", topic)[0].consumer_offset == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_the_command_has_the_group_go_on_behind_what_was_printed(
    number: signal.Signals, cluster: EmbeddedCluster
) -> None:
    topic = f"cli_ended_{number.name}"
    group = f"{topic}_eaters"
    done(cluster, "topic", "create", topic, "--queues", "1")
    words = [*COMMAND, "consume", topic, "-n", cluster.name_server, "--group", group, "--from", "first", "-o", "jsonl"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for n in range(2):  # who prints the second one has taken note of the first
            told(cluster, "produce", topic, str(n))
            assert json.loads(process.stdout.readline())["queue_offset"] == n
        process.send_signal(number)
        _, said = process.communicate()
    assert (said, process.returncode) == ("", 0)
    with Admin(name_server=cluster.name_server) as admin:
        (queue,) = admin.groups.progress(group, topic)
    assert queue.consumer_offset in (1, 2), "the signal may come between the line and the note of it"


def test_a_group_that_was_made_and_has_no_member_yet_is_listed_and_shown(cluster: EmbeddedCluster) -> None:
    done(cluster, "group", "create", "cli_new")
    rows = {row["group"]: row for row in told(cluster, "group", "list")}
    assert (rows["cli_new"]["members"], rows["cli_new"]["diff_total"]) == (0, None)
    assert "TOOLS_CONSUMER" not in rows
    result = run("group", "show", "cli_new", "-n", cluster.name_server)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["nobody is online", "it has no offsets"]
    assert "%RETRY%cli_none" in done(cluster, "group", "show", "cli_none", code=1)


def test_a_group_is_listed_shown_set_back_and_explained(cluster: EmbeddedCluster) -> None:
    topic, group = "cli_group", "cli_consumers"
    done(cluster, "topic", "create", topic, "--queues", "1")
    sent = told(cluster, "produce", topic, "a", "b", "c", "--tags", "TagB")
    queue = MessageQueue(topic, "broker-a", 0)
    with (
        online(cluster.name_server, "C1", group, [wants(topic, "TagA", 1)], [queue]) as first,
        online(cluster.name_server, "C2", group, [wants(topic, "TagB", 2)]) as second,
        Admin(name_server=cluster.name_server) as admin,
    ):
        admin.offsets.reset(group, queue, 2, force=True)
        (row,) = [row for row in told(cluster, "group", "list") if row["group"] == group]
        assert (row["members"], row["consume_type"], row["diff_total"]) == (2, "CONSUME_PASSIVELY", 1)
        assert row["conflicts"] == [topic]
        assert row["lag_seconds"] >= 0
        shown = told(cluster, "group", "show", group, code=1)  # its members subscribe differently
        (row,) = shown["queues"]
        assert (row["broker_offset"], row["consumer_offset"], row["diff"], row["owner"]) == (3, 2, 1, first)
        assert [tuple(each.values()) for each in shown["subscriptions"]] == [
            (topic, "(kept by the broker)", "TagB", "TAG", 2, None, None),
            (topic, first, "TagA", "TAG", 1, ["broker-a:0"], True),
            (topic, second, "TagB", "TAG", 2, [], False),
        ]
        lines = [line.split() for line in run("group", "show", group, "-n", cluster.name_server).stdout.splitlines()]
        assert [topic, first, "TagA", "TAG", "1970-01-01", "00:00:00.001Z", "broker-a:0", "yes"] in lines

        said = run("explain", "--id", sent[0]["offset_msg_id"], "--group", group, "-n", cluster.name_server)
        assert said.exit_code == 1
        told_of_it = said.stdout.splitlines()
        assert told_of_it[1] == "  SKIPPED: nobody was handed it, and the group's offset is 2"
        assert told_of_it[2].startswith("  127.0.0.1:")  # nobody has told the name of the client that moved it
        assert " set the offset from 0 to 2 at 20" in told_of_it[2]
        step = f"to have it consumed with all that follows: rmqfast group reset {group} {topic} --to 20"
        assert told_of_it[3].startswith(f"  next: {step}")
        facts = told(cluster, "explain", "--id", sent[0]["offset_msg_id"], code=1)
        assert (facts["outcome"], facts["queue"]["owner"], facts["message"]["queue_offset"]) == ("SKIPPED", first, 0)
        facts = told(cluster, "explain", "--topic", topic, "--queue", "0", "--offset", "2")
        assert facts["outcome"] == "NOT_CONSUMED_YET"
        assert told(cluster, "explain", "--topic", topic, "--queue", "0", code=1)["queue"]["max_offset"] == 3
        assert told(cluster, "explain", "--group", group, code=1)["sentences"][0].startswith("2 members online")
        (row,) = told(cluster, "message", "track", "--id", sent[0]["offset_msg_id"])
        assert (row["group"], row["track_type"]) == (group, "CONSUMED")
    shown = done(cluster, "group", "reset", group, topic, "--to", "begin", code=1)
    assert f"nothing was changed: {group} is 1 messages behind in {topic}; --yes sets it to begin" in shown
    (change,) = told(cluster, "group", "reset", group, topic, "--to", "begin", code=1)
    assert (change["before"], change["after"], change["again"], change["skipped"]) == (2, 0, 2, 0)
    (row,) = told(cluster, "group", "reset", group, topic, "--to", "begin", "--yes")
    assert row == {"topic": topic, "broker_name": "broker-a", "queue_id": 0, "consumer_offset": 0}
    (row,) = told(cluster, "group", "reset", group, topic, "--to", "2001-01-01", "--yes")
    assert row["consumer_offset"] == 0


def test_a_group_that_has_just_begun_far_behind_is_shown_with_what_is_known(cluster: EmbeddedCluster) -> None:
    topic, group = "cli_behind", "cli_beginners"
    done(cluster, "topic", "create", topic, "--queues", "1")
    told(cluster, "produce", topic, *map(str, range(50)))
    with online(cluster.name_server, "C1", group, [wants(topic, "*")], [MessageQueue(topic, "broker-a", 0)]) as member:
        shown = told(cluster, "group", "show", group)
        (row,) = shown["queues"]
        assert (row["broker_offset"], row["consumer_offset"], row["diff"], row["owner"]) == (50, 0, 50, member)
        assert shown["sentences"][1:] == [f"{topic}: 50 behind in 1 queues"]
        assert [each["member"] for each in shown["subscriptions"]] == ["(kept by the broker)", member]
        assert any(each["group"] == group and each["members"] == 1 for each in told(cluster, "group", "list"))


def test_a_member_that_does_not_answer_is_shown_as_one_that_is_not_known(cluster: EmbeddedCluster) -> None:
    topic, group = "cli_silent", "cli_silent_group"
    done(cluster, "topic", "create", topic, "--queues", "1")
    with online(cluster.name_server, "C1", group, [wants(topic, "*")], running_info=lambda: 1 / 0) as member:
        shown = told(cluster, "group", "show", group)
        (kept, own) = shown["subscriptions"]
        assert (kept["expression"], own["expression"], own["differs"]) == ("*", None, None)
        assert any(f"not known: what {member} wants and has: " in each for each in shown["sentences"])


def test_who_is_connected_is_shown(cluster: EmbeddedCluster) -> None:
    done(cluster, "topic", "create", "cli_connected", "--queues", "1")
    with (
        online(cluster.name_server, "C1", "cli_connecting", [wants("cli_connected", "*")]) as client_id,
        Producer("cli_makers", name_server=cluster.name_server) as producer,
    ):
        (row,) = told(cluster, "group", "connections", "cli_connecting")
        assert (row["client_id"], row["language"], row["version"]) == (client_id, "JAVA", 401)
        producer.send(Message("cli_connected", b"x"))
        words = ("topic", "producers", "cli_connected", "--group", "cli_makers")
        until(lambda: run(*words, "-n", cluster.name_server).exit_code == 0)
        (row,) = told(cluster, *words)
        assert row["client_addr"].startswith("127.0.0.1:")
    assert "not online" in done(cluster, "group", "connections", "cli_connecting", code=1)


def test_a_group_skips_what_it_is_behind_with_and_another_one_goes_on_where_it_is(cluster: EmbeddedCluster) -> None:
    topic, group = "cli_skip", "cli_skipping"
    done(cluster, "topic", "create", topic, "--queues", "1")
    told(cluster, "produce", topic, "a", "b", "c")
    with Admin(name_server=cluster.name_server) as admin:
        admin.offsets.reset(group, MessageQueue(topic, "broker-a", 0), 1)
    said = done(cluster, "group", "skip", group, topic, code=1)
    assert f"nothing was changed: {group} is 2 messages behind in {topic}; --yes leaves them out" in said
    expected = {"topic": topic, "broker_name": "broker-a", "queue_id": 0, "consumer_offset": 3}
    assert told(cluster, "group", "skip", group, topic, "--yes") == [expected]
    said = done(cluster, "group", "clone", group, "cli_clone", topic, code=1)
    assert f"--yes sets cli_clone to the offsets of {group} in 1 queues of {topic}" in said
    assert told(cluster, "group", "clone", group, "cli_clone", topic, "--yes") == [expected]
    with Admin(name_server=cluster.name_server) as admin:
        assert admin.groups.progress("cli_clone", topic).diff_total == 0


def test_dead_letters_are_listed_and_resent(cluster: EmbeddedCluster) -> None:
    topic, group = "cli_dead", "cli_giving_up"
    done(cluster, "topic", "create", topic, "--queues", "1")
    sent = told(cluster, "produce", topic, "a", "b", "--tags", "t")
    with PullConsumer(group, name_server=cluster.name_server) as consumer:
        for message in consumer.pull(MessageQueue(topic, "broker-a", 0), "*", 0, 32).messages:
            consumer.send_message_back(message, -1)
    rows = told(cluster, "group", "dead-letters", group)
    assert [(row["origin_topic"], row["msg_id"], row["tags"]) for row in rows] == [
        (topic, row["msg_id"], "t") for row in sent
    ]
    assert len(told(cluster, "group", "dead-letters", group, "--max", "1")) == 1
    assert told(cluster, "group", "dead-letters", group, "--end-time", str(rows[0]["store_timestamp"])) == []
    said = done(cluster, "group", "resend", group, "--all", code=1)
    assert f"nothing was changed: --yes has {group} consume 2 dead letters once more" in said
    assert "expected --id or --all" in done(cluster, "group", "resend", group, code=2)
    assert "no dead letter of cli_giving_up has the id X" in done(
        cluster, "group", "resend", group, "--id", "X", "--yes", code=1
    )
    (row,) = told(cluster, "group", "resend", group, "--id", sent[1]["msg_id"], "--yes")
    assert (row["origin_topic"], row["msg_id"], row["topic"]) == (topic, sent[1]["msg_id"], f"%RETRY%{group}")
    assert len(told(cluster, "group", "resend", group, "--all", "--yes")) == 2
    (queue,) = told(cluster, "topic", "show", f"%RETRY%{group}")
    assert queue["max_offset"] == 3


def test_a_dead_letter_whose_body_does_not_decompress_is_listed_and_not_resent(cluster: EmbeddedCluster) -> None:
    topic, group = "%DLQ%cli_torn", "cli_torn"
    done(cluster, "group", "create", group)
    done(cluster, "topic", "create", topic, "--queues", "1")
    send_torn(cluster.brokers[0].address, topic, {"RETRY_TOPIC": "orders"})
    (row,) = told(cluster, "group", "dead-letters", group)
    assert (row["origin_topic"], row["body"]) == ("orders", None)
    said = done(cluster, "group", "resend", group, "--all", "--yes", code=1)
    assert f"queue 0 of {topic}: expected compressed bytes" in said


def test_the_configuration_of_a_broker_is_changed(cluster: EmbeddedCluster) -> None:
    change = ("cluster", "set-config", "broker-a", "transactionCheckMax=9")
    (row,) = told(cluster, *change, code=1)
    assert row == {"key": "transactionCheckMax", "before": "15", "value": "9"}
    told(cluster, *change, "--yes")
    assert {"key": "transactionCheckMax", "value": "9"} in told(cluster, "cluster", "config", "broker-a")
    assert "got storePathRootDir" in done(
        cluster, "cluster", "set-config", "broker-a", "storePathRootDir=/x", "--yes", code=2
    )
    assert "KEY=VALUE: expected name=value, got x" in done(cluster, "cluster", "set-config", "broker-a", "x", code=2)


def test_a_group_is_made_and_removed(cluster: EmbeddedCluster) -> None:
    done(cluster, "group", "create", "cli_made_group", "--retry-max-times", "2")
    with Admin(name_server=cluster.name_server) as admin:
        assert admin.groups.all()["cli_made_group"].retry_max_times == 2
        done(cluster, "group", "delete", "cli_made_group", code=1)
        assert "cli_made_group" in admin.groups.all()
        done(cluster, "group", "delete", "cli_made_group", "--yes")
        assert "cli_made_group" not in admin.groups.all()


def test_the_brokers_of_a_cluster_are_shown(cluster: EmbeddedCluster) -> None:
    (row,) = told(cluster, "cluster", "show")
    assert (row["cluster"], row["broker_name"], row["broker_id"]) == ("DefaultCluster", "broker-a", 0)
    assert (row["address"], row["version"]) == (cluster.brokers[0].address, "V4_9_4")
    assert {"key": "brokerName", "value": "broker-a"} in told(cluster, "cluster", "config", "broker-a")
    assert {"key": "brokerVersionDesc", "value": "V4_9_4"} in told(cluster, "cluster", "stats", row["address"])


def test_slaves_are_shown_with_how_far_they_are_behind(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path, replicas=1) as running:
        done(running, "topic", "create", "cli_copied")
        told(running, "produce", "cli_copied", "a", "b")

        def rows() -> list[dict[str, Any]]:
            shown: list[dict[str, Any]] = told(running, "cluster", "show")
            return sorted(shown, key=lambda row: row["broker_id"])

        until(lambda: [row["behind"] for row in rows()] == [None, 0])
        master, slave = rows()
        assert master["log_end"] == slave["log_end"] > 0
        differing = {row["key"]: (row["broker-a"], row["broker-a:1"]) for row in told(running, "cluster", "diff")}
        assert differing == {}
        with Admin(name_server=running.name_server) as admin:
            admin.brokers.update_config(master["address"], {"transactionCheckMax": 7})
        (row,) = told(running, "cluster", "diff", code=1)
        assert row == {"key": "transactionCheckMax", "broker-a": "7", "broker-a:1": "15"}


def test_a_broker_is_compared_with_the_defaults(cluster: EmbeddedCluster) -> None:
    rows = {row["key"]: row for row in told(cluster, "cluster", "diff", "broker-a")}
    with Admin(name_server=cluster.name_server) as admin:
        now = admin.brokers.config("broker-a")
    assert rows
    assert {"brokerName", "listenPort", "brokerIP1", "storePathRootDir"} & rows.keys() == set()
    assert all(row["broker-a"] == now[key] != row["default"] for key, row in rows.items())


def test_the_groups_of_a_topic_are_listed_with_their_backlog_there(cluster: EmbeddedCluster) -> None:
    topic, other, group = "cli_read", "cli_also_read", "cli_readers"
    for each in (topic, other):
        done(cluster, "topic", "create", each, "--queues", "1")
    told(cluster, "produce", topic, "a", "b", "c")
    told(cluster, "produce", other, "a")
    done(cluster, "group", "create", group)
    done(cluster, "group", "create", "cli_other_readers")
    with Admin(name_server=cluster.name_server) as admin:
        admin.offsets.reset(group, MessageQueue(topic, "broker-a", 0), 1)
        admin.offsets.reset(group, MessageQueue(other, "broker-a", 0), 0)
    (row,) = told(cluster, "topic", "groups", topic)
    assert (row["group"], row["members"], row["diff_total"]) == (group, 0, 2)
    with online(cluster.name_server, "C1", "cli_subscribers", [wants(topic, "*")]):
        rows = told(cluster, "topic", "groups", topic)
        # It has no offset yet.
        assert [(row["group"], row["members"], row["diff_total"]) for row in rows] == [
            (group, 0, 2),
            ("cli_subscribers", 1, None),
        ]
    assert "did you mean cli_read" in done(cluster, "topic", "groups", "cli_raed", code=1)


def test_stacks_of_members_are_shown(cluster: EmbeddedCluster) -> None:
    done(cluster, "topic", "create", "cli_stacks", "--queues", "1")
    with (
        online(cluster.name_server, "C1", "cli_stuck", [wants("cli_stacks", "*")]) as first,
        online(
            cluster.name_server, "C2", "cli_stuck", [wants("cli_stacks", "*")], running_info=lambda: 1 / 0
        ) as second,
    ):
        rows = {row["member"]: row["stack"] for row in told(cluster, "group", "stacks", "cli_stuck", code=1)}
        assert "MainThread" in rows[first]
        assert rows[second] is None
        said = done(cluster, "group", "stacks", "cli_stuck", "--member", first)
        assert said.startswith(f"{first}\n")
        assert "MainThread" in said


def test_exit_codes_say_what_kind_of_trouble_it_was(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    result = run("topic", "list")
    assert (result.exit_code, "NAMESRV_ADDR" in result.stderr) == (2, True)
    with socket.socket() as deaf:  # nobody else gets the port, and nobody listens there
        deaf.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        for words in (("topic", "list"), ("produce", "t", "x"), ("consume", "t", "--group", "g")):
            result = run(*words, "-n", address)
            assert result.exit_code == 3
            assert result.stderr.splitlines()[-1].count(f"connect to <{address}> failed") == 1
    assert exit_code(ClientError("the broker took too long", response_code=10002)) == 3
    assert "No topic route info" in done(cluster, "topic", "show", "nowhere", code=1)
    assert "expected --id, or --topic" in done(cluster, "explain", code=2)
    assert "expected --broker and --queue" in done(cluster, "produce", "t", "x", "--queue", "1", code=2)
    monkeypatch.setenv("NAMESRV_ADDR", cluster.name_server)
    assert run("topic", "list").exit_code == 0


@pytest.mark.parametrize("timer", [("--delay", "60"), ("--deliver-at", "2100-01-01T00:00:00")])
def test_a_timer_is_refused_where_the_broker_has_none(cluster: EmbeddedCluster, timer: tuple[str, str]) -> None:
    done(cluster, "topic", "create", "cli_timed")
    words = ("produce", "cli_timed", "x", *timer)
    assert "a message with a timer needs a broker of RocketMQ 5.0 or later" in done(cluster, *words, code=1)
    assert "expected a time as 2026-01-31T12:00:00, got soon" in done(
        cluster, "produce", "cli_timed", "x", "--deliver-at", "soon", code=2
    )


def test_errors_have_neither_javas_classes_nor_links_that_lead_nowhere(cluster: EmbeddedCluster) -> None:
    for words in (
        ("topic", "show", "nowhere"),
        ("group", "show", "nobody"),
        ("group", "dead-letters", "nobody"),
        ("group", "skip", "nobody", "nowhere"),
        ("explain", "--group", "nobody"),
        ("group", "connections", "nobody"),
        ("topic", "producers", "TBW102", "--group", "nobody"),
        ("cluster", "config", "broker-x"),
        ("topic", "create", "t", "--broker", "broker-x"),
        ("topic", "create", "t", "--cluster", "nowhere"),
        ("topic", "delete", "TBW102", "--yes"),
    ):
        said = run(*words, "-n", cluster.name_server)
        assert said.exit_code != 0
        for word in ("faq", "java", "Exception", "org.apache", "AdminExt", "nameserver which"):
            assert word not in said.output, said.output


def test_a_real_process_ends_by_itself(cluster: EmbeddedCluster) -> None:
    result = run_process("topic", "list", "-n", cluster.name_server, "-o", "csv")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "topic,brokers,read_queues,write_queues,perm"
