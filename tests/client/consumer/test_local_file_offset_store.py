"""Offsets in a file of this machine: what 4.9.4 makes of files and writes into them, and what goes wrong with files."""

from __future__ import annotations

import random
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from rmqfast import ClientConfig, PushConsumer
from rmqfast.client.consumer import LocalFileOffsetStore, ReadOffsetType
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.message import MessageQueue
from tests.client.consumer.local_offsets import (
    FILES,
    T0,
    answered,
    load_questions,
    persist_questions,
    recorded,
    text_of,
)

STORE, MEMORY = ReadOffsetType.READ_FROM_STORE, ReadOffsetType.READ_FROM_MEMORY
FIRST = ReadOffsetType.MEMORY_FIRST_THEN_STORE
Q0, Q1, Q2 = (MessageQueue("t", "b", number) for number in range(3))


def store_in(directory: Path, group: str = "g") -> LocalFileOffsetStore:
    return LocalFileOffsetStore(directory, "10.0.0.1@lab", group)


def bak_of(store: LocalFileOffsetStore) -> Path:
    return store.path.with_name("offsets.json.bak")


def text_in(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def put(store: LocalFileOffsetStore, file: str | None, bak: str | None) -> None:
    store.path.parent.mkdir(parents=True, exist_ok=True)
    for path, text in ((store.path, file), (bak_of(store), bak)):
        if text is not None:
            path.write_text(text)


def loaded(directory: Path, row: dict[str, Any]) -> dict[str, Any]:
    """What `LocalOffsets.java` says of a file."""
    store = store_in(directory)
    put(store, row["file"], row["bak"])
    answer: dict[str, Any] = {}
    try:
        store.load()
        answer["offsets"] = sorted(
            [[[q.topic, q.broker_name, q.queue_id], offset] for q, offset in store.clone().items()]
        )
    except ClientError as error:
        answer["error"] = str(error)
    answer["read"] = [store.read_offset(MessageQueue(*queue), STORE) for queue in row["queues"]]
    return answer


def in_some_order(text: str | None) -> tuple[int, list[str]]:
    """A file's length and its rows."""
    return len(text or ""), sorted(re.findall(r"\{[^{}]*\}:-?\d+", text or ""))


def assert_same_answer(rows: list[dict[str, Any]], directory: Path) -> None:
    for number, row in enumerate(rows):
        answer = row["answer"]
        if row["op"] == "load":
            if row["file"] is not None and row["file"] and not row["file"].strip():
                continue  # blanks: 4.9.4 takes them for no offsets, we look at the file before
            found = loaded(directory / f"load{number}", row)
            assert found.get("offsets") == (sorted(answer["offsets"]) if "offsets" in answer else None), row
            assert found["read"] == answer["read"], row
            if "error" in answer:  # in our words
                assert "expected the offsets of a group" in found["error"], row
            continue
        store = store_in(directory, row["group"])
        for queue, offset in row["offsets"]:
            store.update_offset(MessageQueue(*queue), offset)
        store.persist_all([MessageQueue(*queue) for queue in row["queues"]])
        for path, said in ((store.path, answer["file"]), (bak_of(store), answer["bak"])):
            assert in_some_order(text_in(path)) == in_some_order(said), row


def test_the_recorded_answers_are_of_these_questions() -> None:
    asked = [{k: v for k, v in row.items() if k != "answer"} for row in recorded()]
    assert asked == [*load_questions(), *persist_questions(1, 300)]


# the rows of a group are of one file, written over and over
@pytest.mark.parametrize("digits", ["05", pytest.param("12346789", marks=pytest.mark.long)])
def test_files_are_read_and_written_as_4_9_4_does(tmp_path: Path, digits: str) -> None:
    rows = [row for row in recorded() if row.get("group", "0")[-1] in digits]
    assert_same_answer(rows, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_java_agrees_about_other_random_offsets(tmp_path: Path) -> None:
    assert_same_answer(answered(persist_questions(77, 300)), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_java_reads_what_was_written_here(tmp_path: Path) -> None:
    rng = random.Random(3)
    questions, expected = [], []
    for number in range(50):
        store = store_in(tmp_path, f"g{number}")
        queues = [MessageQueue("tö%", f'b"{rng.randrange(9)}', q) for q in range(rng.randrange(1, 40))]
        for queue in queues:
            store.update_offset(queue, rng.randrange(1 << 62))
        store.persist_all(queues)
        listed = [[queue.topic, queue.broker_name, queue.queue_id] for queue in queues]
        questions.append({"op": "load", "file": text_in(store.path), "bak": None, "queues": listed})
        expected.append([store.read_offset(queue, MEMORY) for queue in queues])
    assert [row["answer"]["read"] for row in answered(questions)] == expected


def test_memory_and_file_are_told_apart(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.update_offset(Q0, 5)
    store.persist_all([Q0])
    store.update_offset(Q0, 9)
    other = store_in(tmp_path)
    assert [other.read_offset(Q0, kind) for kind in (MEMORY, STORE, MEMORY)] == [-1, 5, 5]
    assert [store.read_offset(Q0, kind) for kind in (MEMORY, FIRST, STORE, FIRST)] == [9, 9, 5, 5]
    assert [store.read_offset(Q1, kind) for kind in (MEMORY, FIRST, STORE)] == [-1, -1, -1]


def test_an_offset_goes_back_unless_it_may_only_grow(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.update_offset(Q0, 9, increase_only=True)
    store.update_offset(Q0, 5, increase_only=True)
    assert store.read_offset(Q0, MEMORY) == 9
    store.update_offset(Q0, 5)
    assert store.read_offset(Q0, MEMORY) == 5


def test_only_the_queues_that_are_named_are_in_the_file(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.update_offset(Q0, 1)
    store.update_offset(Q1, 2)
    store.persist_all([Q0, Q1])
    store.persist_all([Q1, Q2])
    assert [store.read_offset(queue, STORE) for queue in (Q0, Q1, Q2)] == [-1, 2, -1]
    assert store.clone() == {Q0: 1, Q1: 2}, "memory keeps the others"


def test_what_does_nothing_does_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.update_offset(Q0, 1)
    store.persist(Q0)
    store.persist_all([])
    store.update_to_broker(Q0, 7, oneway=False)
    store.remove_offset(Q0)
    assert store.clone("t") == {Q0: 1}
    assert store.clone("other") == {}
    assert list(tmp_path.iterdir()) == []


def test_the_file_before_stays_beside_the_new_one(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    texts = []
    for offset in (1, 2, 3):
        store.update_offset(Q0, offset)
        store.persist_all([Q0])
        texts.append(text_in(store.path))
    assert text_in(bak_of(store)) == texts[1] != texts[2]
    assert sorted(path.name for path in store.path.parent.iterdir()) == ["offsets.json", "offsets.json.bak"]


def test_an_empty_file_does_not_take_the_place_of_a_sound_one_before_it(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    put(store, "", text_of((T0, 3)))
    store.load()
    assert store.clone() == {Q0: 3}
    store.persist_all([Q0])
    assert text_in(bak_of(store)) == text_of((T0, 3))


def test_a_file_of_blanks_is_no_file(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    put(store, FILES[2], text_of((T0, 3)))
    assert store.read_offset(Q0, STORE) == 3


@pytest.mark.parametrize("length", range(len(text_of((T0, 5))) + 1))
def test_a_file_cut_anywhere_gives_the_one_before_it(tmp_path: Path, length: int) -> None:
    store, whole = store_in(tmp_path), text_of((T0, 5))
    put(store, whole[:length], text_of((T0, 3)))
    assert store.read_offset(Q0, STORE) == (5 if length == len(whole) else 3)


@pytest.mark.parametrize(
    "text",
    ['{"offsetTable":[]}', '{"offsetTable":{"t":1}}', '{"offsetTable":5}', "[1]", text_of((T0, 1 << 70)), "\xff"],
)
def test_what_is_no_offset_is_said_with_the_file_and_what_to_do(tmp_path: Path, text: str) -> None:
    store = store_in(tmp_path)
    put(store, text, text)
    with pytest.raises(ClientError, match="expected the offsets of a group, got what cannot be read") as raised:
        store.load()
    assert str(bak_of(store)) in str(raised.value)
    assert "begin anew" in str(raised.value)
    assert store.read_offset(Q0, STORE) == -1


def test_a_file_that_cannot_be_read_is_an_error_and_the_group_does_not_begin_anew(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    put(store, None, text_of((T0, 3)))
    store.path.mkdir()
    with pytest.raises(ClientError, match=r"offsets\.json: expected the offsets of a group, got: is a directory"):
        store.load()


def test_a_file_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "10.0.0.1@lab").write_text("in the way")
    store = store_in(tmp_path)
    store.update_offset(Q0, 1)
    store.persist_all([Q0])
    assert "cannot be stored" in caplog.text
    assert store.read_offset(Q0, MEMORY) == 1


def test_two_threads_that_store_leave_a_sound_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = store_in(tmp_path)
    queues = [MessageQueue("t", "b", number) for number in range(20)]
    for queue in queues:
        store.update_offset(queue, 1)

    def persist() -> None:
        for _ in range(20):
            store.persist_all(queues)

    threads = [threading.Thread(target=persist) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caplog.text == ""
    again = store_in(tmp_path)
    again.load()
    assert again.clone() == dict.fromkeys(queues, 1)


def test_the_file_is_where_java_has_it(tmp_path: Path) -> None:
    assert store_in(tmp_path).path.relative_to(tmp_path) == Path("10.0.0.1@lab/g/offsets.json")


@pytest.mark.parametrize("name", ["../../../x", "a/../../..", "..", "/etc/x", "a\0b"])
def test_a_name_that_leads_out_of_the_directory_is_refused(tmp_path: Path, name: str) -> None:
    for client_id, group in (
        (f"10.0.0.1@{name}" if name not in {"..", "/etc/x"} else name, "g"),
        ("10.0.0.1@lab", name),
    ):
        with pytest.raises(ArgumentError, match="expected a path below"):
            LocalFileOffsetStore(tmp_path / "offsets", client_id, group)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["lab", "a/b", "..lab..", "x y", "%RETRY%", "列"])
def test_a_name_that_stays_in_the_directory_has_the_place_that_java_gives_it(tmp_path: Path, name: str) -> None:
    store = LocalFileOffsetStore(tmp_path, f"10.0.0.1@{name}", "g")
    store.update_offset(Q0, 5)
    store.persist_all([Q0])
    assert (tmp_path / f"10.0.0.1@{name}" / "g" / "offsets.json").exists()


def test_a_broadcasting_consumer_whose_instance_name_leads_elsewhere_does_not_start(tmp_path: Path) -> None:
    config = ClientConfig(name_server="127.0.0.1:1", local_offset_dir=tmp_path / "offsets", instance_name="../../../x")
    consumer = PushConsumer("g", config=config, message_model="BROADCASTING")
    consumer.subscribe("t")
    consumer.register_message_listener(lambda _messages, _context: None)
    with pytest.raises(ArgumentError, match="instance_name"):
        consumer.start()
    assert list(tmp_path.iterdir()) == []
