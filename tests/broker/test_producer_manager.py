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
    assert producers.available_channel("nobody") is None


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


def test_a_client_that_came_back_keeps_its_name_when_the_old_connection_ends() -> None:
    producers, old, new = ProducerManager(), Line("1:1"), Line("1:2")
    producers.register(client(old, "c"), "g")
    producers.register(client(new, "c"), "g")
    producers.disconnect(old)
    assert producers.channel("c") is new


def test_a_connection_that_said_two_ids_leaves_neither_behind() -> None:
    producers, line = ProducerManager(), Line("1:1")
    producers.register(client(line, "first"), "g")
    producers.register(client(line, "second"), "h")
    producers.unregister("g", line)
    assert (producers.channel("first"), producers.channel("second")) == (None, line)
    producers.register(client(line, "first"), "g")
    producers.disconnect(line)
    assert (producers.channel("first"), producers.channel("second")) == (None, None)
