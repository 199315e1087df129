"""The registry of producers."""

from __future__ import annotations

from rmqfast.broker.clients.producer_manager import ProducerManager

from .client_doubles import Line, client


def test_each_client_of_a_group_has_its_turn() -> None:
    producers, lines = ProducerManager(), [Line(f"1:{number}") for number in range(3)]
    for number, line in enumerate(lines):
        producers.register(client(line, f"c{number}"), "g")
    turns = [producers.available_channel("g") for _ in range(4)]
    assert turns == [lines[1], lines[2], lines[0], lines[1]]


def test_a_closed_connection_is_passed_over_three_are_tried() -> None:
    producers, lines = ProducerManager(), [Line(f"1:{number}") for number in range(4)]
    for number, line in enumerate(lines):
        producers.register(client(line, f"c{number}"), "g")
    lines[1].close()
    assert producers.available_channel("g") is lines[2]
    lines[2].close()
    lines[3].close()
    assert producers.available_channel("g") is lines[0], "turn 2: 2 and 3 are closed, 0 is the third"
    lines[0].close()
    assert producers.available_channel("g") is None


def test_a_fourth_one_is_not_tried() -> None:
    producers, lines = ProducerManager(), [Line(f"1:{number}") for number in range(4)]
    for number, line in enumerate(lines):
        producers.register(client(line, f"c{number}"), "g")
    for line in lines[1:]:
        line.close()
    assert producers.available_channel("g") is None
    assert producers.available_channel("g") is lines[0]


def test_a_group_that_is_not_there_has_none() -> None:
    assert ProducerManager().available_channel("g") is None


def test_who_disconnects_leaves_all_groups() -> None:
    producers, gone, stays = ProducerManager(), Line("1:1"), Line("2:2")
    for group in ("g", "h"):
        producers.register(client(gone, "gone"), group)
    producers.register(client(stays, "stays"), "g")
    producers.disconnect(gone)
    left = producers.clients("g")
    assert left is not None
    assert [one.client_id for one in left] == ["stays"]
    assert producers.clients("h") is None
    assert producers.channel("gone") is None
    assert producers.channel("stays") is stays


def test_a_client_that_leaves_one_group_is_found_by_its_name_as_long_as_it_has_another() -> None:
    producers, line = ProducerManager(), Line()
    producers.register(client(line, "c"), "g")
    producers.register(client(line, "c"), "CLIENT_INNER_PRODUCER")
    producers.unregister("g", line)
    assert producers.channel("c") is line
    producers.unregister("CLIENT_INNER_PRODUCER", line)
    assert producers.channel("c") is None
    producers.unregister("CLIENT_INNER_PRODUCER", line)


def test_a_client_that_came_back_keeps_its_name_when_the_old_connection_ends() -> None:
    producers, old, new = ProducerManager(), Line("1:1"), Line("1:2")
    producers.register(client(old, "c"), "g")
    producers.register(client(new, "c"), "g")
    producers.disconnect(old)
    assert producers.channel("c") is new


def test_who_is_silent_for_more_than_120_seconds_is_removed() -> None:
    producers, silent, alive = ProducerManager(), Line("1:1"), Line("2:2")
    producers.register(client(silent, "silent", now=0), "g")
    producers.register(client(alive, "alive", now=0), "g")
    producers.register(client(alive, "alive", now=1), "g")
    assert producers.scan(120_000) == []
    assert producers.scan(120_001) == [silent]
    assert producers.scan(120_002) == [alive]
    assert producers.table() == {}


def test_a_connection_that_said_two_ids_leaves_neither_behind() -> None:
    producers, line = ProducerManager(), Line("1:1")
    producers.register(client(line, "first"), "g")
    producers.register(client(line, "second"), "h")
    producers.unregister("g", line)
    assert (producers.channel("first"), producers.channel("second")) == (None, line)
    producers.register(client(line, "first"), "g")
    producers.disconnect(line)
    assert (producers.channel("first"), producers.channel("second")) == (None, None)
