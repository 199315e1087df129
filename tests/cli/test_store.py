"""`rmqfast store info`, `get` and `verify`."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from tests import golden_stores
from tests.cli.command_line import run, run_on_terminal
from tests.golden_stores import PathOf

STORE = "basic-4.9.4"


def expected(topic: str, name: str = STORE) -> list[dict[str, Any]]:
    """The messages of a topic."""
    return [row for row in golden_stores.expected_rows(name) if row["topic"] == topic]


def found(output: str) -> list[dict[str, Any]]:
    """JSON lines as rows, bodies as bytes."""
    rows = [json.loads(line) for line in output.splitlines()]
    return [row | {"body": base64.b64decode(row["body"])} for row in rows]


def test_info_counts_the_messages_of_every_topic_and_knows_their_times(golden_store: PathOf) -> None:
    facts = json.loads(run("store", "info", golden_store(STORE), "-o", "json").stdout)
    assert (facts["version"], facts["commit_log_files"], facts["aborted"]) == ("4.x", 3, False)
    assert {t["topic"]: t for t in facts["topics"]} == {
        topic: topic_of(topic, expected(topic)) for topic in {r["topic"] for r in golden_stores.expected_rows(STORE)}
    }


def topic_of(topic: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What info has to say of a topic with these messages."""
    return {
        "topic": topic,
        "queues": len({row["queue_id"] for row in rows}),
        "messages": len(rows),
        "min_offset": min(row["queue_offset"] for row in rows),
        "max_offset": max(row["queue_offset"] for row in rows) + 1,
        "first_store_timestamp": rows[0]["store_timestamp"],
        "last_store_timestamp": rows[-1]["store_timestamp"],
    }


def test_info_has_the_topics_as_rows(golden_store: PathOf) -> None:
    facts = json.loads(run("store", "info", golden_store(STORE), "-o", "json").stdout)
    lines = run("store", "info", golden_store(STORE), "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == facts["topics"]
    table = csv.DictReader(io.StringIO(run("store", "info", golden_store(STORE), "-o", "csv").stdout))
    assert [row["topic"] for row in table] == [topic["topic"] for topic in facts["topics"]]
    text = run("store", "info", golden_store(STORE)).stdout
    assert "commit log files" in text
    assert all(topic["topic"] in text for topic in facts["topics"])


def test_get_by_offset_gives_what_a_pull_gives(golden_store: PathOf) -> None:
    place = ("--topic", "fx_q1", "--queue", "0", "--offset", "17", "--max", "5")
    result = run("store", "get", golden_store(STORE), *place, "-o", "jsonl")
    assert result.exit_code == 0
    assert not list(golden_stores.differences(found(result.stdout), expected("fx_q1")[17:22]))


def test_get_by_either_id_gives_the_message(golden_store: PathOf) -> None:
    wanted = expected("fx_plain")[3]
    for message_id in (wanted["offset_msg_id"], wanted["msg_id"]):
        result = run("store", "get", golden_store(STORE), "--id", message_id, "-o", "jsonl")
        assert not list(golden_stores.differences(found(result.stdout), [wanted]))


def test_get_by_key_gives_the_newest_messages_that_have_it(golden_store: PathOf) -> None:
    wanted = [row for row in expected("fx_plain") if "Aa1" in (row["keys"] or "").split()]
    for most in (1, 2, 64):
        command = ("store", "get", golden_store(STORE), "--topic", "fx_plain", "--key", "Aa1", "--max", str(most))
        assert not list(golden_stores.differences(found(run(*command, "-o", "jsonl").stdout), wanted[-most:]))


def test_a_message_in_full_has_every_property_and_the_whole_body(golden_store: PathOf) -> None:
    wanted = max((r for r in expected("fx_q1") if isinstance(r["body"], bytes)), key=lambda r: len(r["body"]))
    place = ("--topic", "fx_q1", "--queue", "0", "--offset", str(wanted["queue_offset"]))
    text = run("store", "get", golden_store(STORE), *place).stdout
    assert all(f"  {name} = {value}\n" in text for name, value in wanted["properties"].items())
    assert shown(wanted["body"]) in "".join(line.strip() for line in text.partition("\nbody, ")[2].splitlines()[1:])
    assert wanted["msg_id"] in text


def shown(body: bytes) -> str:
    """A body as it is shown, lines joined: text, or hexadecimal."""
    try:
        return "".join(line.strip() for line in body.decode().splitlines())
    except UnicodeDecodeError:
        return "".join(body[at : at + 32].hex(" ", 4) for at in range(0, len(body), 32))


NOTHING = [
    (["--topic", "fx_q1", "--queue", "0", "--offset", "5000"], "OFFSET_OVERFLOW_BADLY: the queue has 0 to 1259"),
    (["--topic", "fx_q1", "--key", "no-such-key"], "no message of fx_q1 has the key no-such-key"),
    (["--id", "7F000001000052120000000000000001"], "7F000001000052120000000000000001"),
]


@pytest.mark.parametrize(("arguments", "words"), NOTHING)
def test_no_such_message_is_one_line_and_exit_code_1(arguments: list[str], words: str, golden_store: PathOf) -> None:
    result = run("store", "get", golden_store(STORE), *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert words in result.stderr


@pytest.mark.parametrize("arguments", [[], ["--topic", "fx_q1"], ["--topic", "fx_q1", "--queue", "0"], ["--key", "a"]])
def test_get_without_a_place_says_what_it_takes(arguments: list[str], golden_store: PathOf) -> None:
    result = run("store", "get", golden_store(STORE), *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "expected --id" in result.stderr


def test_verify_shows_the_notes_on_a_store_that_has_nothing_wrong(golden_store_copy: PathOf) -> None:
    store = golden_store_copy(STORE)
    (store / "checkpoint").unlink()
    result = run("store", "verify", store, "-o", "json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"], report["damage"]) == (0, True, [])
    assert report["messages"] == len(golden_stores.expected_rows(STORE))
    [note] = report["notes"]
    assert "a broker starts a new one" in note
    text = run("store", "verify", store)
    assert (text.exit_code, note in " ".join(text.stdout.split())) == (0, True)


def flipped(store: Path) -> Path:
    """The store with one byte of a body changed."""
    row = next(row for row in golden_stores.expected_rows(STORE) if row["sys_flag"] == 0)
    file = store / "commitlog" / f"{0:020}"
    content = bytearray(file.read_bytes())
    content[content.index(row["body"], row["physical_offset"])] ^= 1
    file.write_bytes(content)
    return store


def test_get_says_what_it_could_not_read(golden_store_copy: PathOf) -> None:
    store = flipped(golden_store_copy(STORE))
    row = next(row for row in golden_stores.expected_rows(STORE) if row["sys_flag"] == 0)
    places = [
        ["--id", row["offset_msg_id"]],
        ["--topic", row["topic"], "--key", row["msg_id"]],
        ["--topic", row["topic"], "--queue", row["queue_id"], "--offset", row["queue_offset"]],
        # the one behind it is there, but not the first of the two
        ["--topic", row["topic"], "--queue", row["queue_id"], "--offset", row["queue_offset"], "--max", "2"],
    ]
    for place in places:
        result = run("store", "get", store, *map(str, place))
        assert result.exit_code == 1, place
        assert f"offset {row['physical_offset']}" in result.stderr
        assert "damage: " in result.stderr


def test_verify_finds_one_changed_byte_and_says_where(golden_store_copy: PathOf) -> None:
    store = flipped(golden_store_copy(STORE))
    offset = next(row for row in golden_stores.expected_rows(STORE) if row["sys_flag"] == 0)["physical_offset"]
    for form, places in (("json", from_json), ("jsonl", from_lines), ("csv", from_csv)):
        result = run("store", "verify", store, "-o", form)
        assert result.exit_code == 1
        assert offset in set(places(result.stdout)), form
    [place] = json.loads(run("store", "verify", store, "-o", "json").stdout)["damage"]
    assert (place["file"], "body crc" in place["reason"]) == (str(store / "commitlog" / f"{0:020}"), True)
    text = run("store", "verify", store)
    assert text.exit_code == 1
    assert f"\n{offset} " in text.stdout
    assert "body crc" in text.stdout
    assert "body crc" not in run("store", "verify", store, "--no-crc").stdout


def test_repair_changes_nothing_until_it_is_told_to(golden_store_copy: PathOf) -> None:
    store = golden_store_copy(STORE)
    queue = store / "consumequeue" / "fx_q1" / "0" / f"{2000:020}"
    whole = queue.read_bytes()
    broken = whole[:1003] + bytes(20) + whole[1023:]
    queue.write_bytes(broken)
    result = run("store", "repair", store, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["ok"], queue.read_bytes()) == (1, False, broken)
    assert "--yes" in result.stderr
    result = run("store", "repair", store, "--yes", "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    done = json.loads(result.stdout)
    assert (done["records"], done["cut_bytes"], done["unlisted"]) == (len(golden_stores.expected_rows(STORE)), 0, 0)
    assert queue.read_bytes() == whole
    assert run("store", "verify", store).exit_code == 0


def from_json(text: str) -> Iterator[int]:
    """The offsets of damage."""
    yield from (place["offset"] for place in json.loads(text)["damage"])


def from_lines(text: str) -> Iterator[int]:
    """As `from_json`, of JSON lines."""
    yield from (json.loads(line)["offset"] for line in text.splitlines())


def from_csv(text: str) -> Iterator[int]:
    """As `from_json`, of CSV."""
    yield from (int(row["offset"]) for row in csv.DictReader(io.StringIO(text)))


def test_only_a_terminal_gets_a_progress_bar(golden_store: PathOf) -> None:
    code, seen = run_on_terminal("stderr", "store", "verify", golden_store(STORE))
    assert (code, b"checking" in seen) == (0, True)
    assert not run("store", "verify", golden_store(STORE)).stderr


def test_clean_shows_old_files_and_removes_them_only_with_yes(tmp_path: Path) -> None:
    small = rmqfast.AppendOptions(file_size=4096, queue_file_size=200, index_slots=16, index_entries=40)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=small) as store:
        store.append_many([rmqfast.Message("T", b"x" * 100, keys=f"k{n}") for n in range(600)])
    log = sorted((tmp_path / "s" / "commitlog").iterdir())
    old = time.time() - 25 * 3600
    for file in log[:12]:
        os.utime(file, (old, old))
    young = run("store", "clean", tmp_path / "s", "-o", "jsonl")
    assert (young.exit_code, young.stdout) == (0, "")
    shown = run("store", "clean", tmp_path / "s", "--reserved-hours", "24", "-o", "jsonl")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert shown.exit_code == 1
    assert [row["file"] for row in rows if row["kind"] == "commit log"] == [str(file) for file in log[:12]]
    assert "nothing was changed" in shown.stderr
    assert all(Path(row["file"]).exists() for row in rows)
    done = run("store", "clean", tmp_path / "s", "--reserved-hours", "24", "--yes", "-o", "json")
    [facts] = json.loads(done.stdout)
    assert (facts["log_files"], facts["min_offset"]) == (12, 12 * 4096)
    assert facts["bytes"] == sum(row["bytes"] for row in rows)
    assert not any(Path(row["file"]).exists() for row in rows)
    assert run("store", "verify", tmp_path / "s").exit_code == 0


def test_clean_makes_no_store_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere"):
        assert run("store", "clean", path, "--yes").exit_code != 0
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]
