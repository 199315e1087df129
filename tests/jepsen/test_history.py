"""The checker of histories finds each promise that is not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from .history import BEGIN, CONCURRENT, END, GROUPS, ORDERLY, RETRY, Commit, Delivery, History, check, read_deliveries

COUNT = 4


def good() -> History:
    """Four messages in each of two queues, which each group consumed and committed."""
    stored = {(queue, offset): f"{queue}-{offset}" for queue in range(2) for offset in range(COUNT)}
    deliveries = []
    for group in GROUPS:
        for at, (place, body) in enumerate(stored.items()):
            deliveries.append(Delivery(group, BEGIN, place, body, 10 * at + 1, "a"))
            deliveries.append(Delivery(group, END, place, body, 10 * at + 2, "a"))
    commits = [Commit(group, queue, COUNT, 1000) for group in GROUPS for queue in range(2)]
    return History(
        acknowledged={body: place for place, body in stored.items()},
        stored=stored,
        deliveries=sorted(deliveries, key=lambda each: each.time),
        commits=[Commit(CONCURRENT, 0, 2, 15)],
        final_commits=commits,
    )


def without(history: History, group: str, what: str, body: str) -> History:
    kept = [each for each in history.deliveries if (each.group, each.what, each.body) != (group, what, body)]
    return replace(history, deliveries=kept)


def with_delivery(history: History, *more: Delivery) -> History:
    return replace(history, deliveries=sorted([*history.deliveries, *more], key=lambda each: each.time))


def stored_as(history: History, stored: dict[tuple[int, int], str | None]) -> History:
    changed = {place: body for place, body in (history.stored | stored).items() if body is not None}
    return replace(history, stored=changed)


def test_a_good_history_has_no_violation() -> None:
    assert check(good()) == []


def test_a_lock_is_forgotten_by_a_broker_that_is_started_anew() -> None:
    history = VIOLATIONS["worked on by two members of a queue in order at a time"](good())
    assert check(replace(history, broker_starts=[850])) == []
    assert len(check(replace(history, broker_starts=[950]))) == 1
    assert len(check(replace(history, broker_starts=[850 - 30_000_000_000]))) == 1


def test_what_failed_may_be_stored_or_not_and_what_was_killed_comes_again() -> None:
    history = replace(good(), unknown={"0-9", "1-9"})
    history = stored_as(history, {(0, COUNT): "0-9"})
    for group in GROUPS:
        # a member that was killed in it, and another one a minute later
        history = with_delivery(
            history,
            Delivery(group, BEGIN, (0, COUNT), "0-9", 500, "b"),
            Delivery(group, BEGIN, (0, COUNT), "0-9", 600, "a"),
            Delivery(group, END, (0, COUNT), "0-9", 700, "a"),
        )
    ends = [Commit(each.group, each.queue_id, COUNT + (each.queue_id == 0), 1000) for each in history.final_commits]
    # one that was handed back comes out of another topic
    again = (
        Delivery(CONCURRENT, RETRY, (1, 0), "1-0", 46, "a"),
        Delivery(CONCURRENT, BEGIN, (7, 7), "1-0", 800, "a"),
        Delivery(CONCURRENT, END, (7, 7), "1-0", 801, "a"),
    )
    assert check(with_delivery(replace(history, final_commits=ends), *again)) == []


VIOLATIONS: dict[str, Callable[[History], History]] = {
    "acknowledged and not stored there": lambda history: replace(
        history, acknowledged=history.acknowledged | {"0-9": (0, 9)}
    ),
    "stored and never sent": lambda history: stored_as(history, {(1, COUNT): "alien-1"}),
    "a hole in the offsets of a queue": lambda history: stored_as(history, {(0, 1): None}),
    "sent later and stored before": lambda history: replace(
        history, acknowledged=history.acknowledged | {"0-0": (0, 1), "0-1": (0, 0)}
    ),
    "delivered, and the store has another message there": lambda history: with_delivery(
        history, Delivery(ORDERLY, END, (0, 1), "0-0", 900, "a")
    ),
    "begun in a queue in order before an earlier message was done": lambda history: without(
        history, ORDERLY, END, "0-2"
    ),
    "worked on by two members of a queue in order at a time": lambda history: with_delivery(
        history,
        Delivery(ORDERLY, BEGIN, (0, 0), "0-0", 900, "a"),
        Delivery(ORDERLY, BEGIN, (0, 0), "0-0", 901, "b"),
        Delivery(ORDERLY, END, (0, 0), "0-0", 902, "a"),
    ),
    "committed and not processed": lambda history: replace(history, commits=[Commit(CONCURRENT, 0, 2, 11)]),
    "concurrent: stored and not consumed": lambda history: without(history, CONCURRENT, END, "1-3"),
    "orderly: consumed and not committed at the end": lambda history: replace(
        history, final_commits=[each for each in history.final_commits if (each.group, each.queue_id) != (ORDERLY, 1)]
    ),
}


@pytest.mark.parametrize("what", VIOLATIONS)
def test_a_promise_that_is_not_kept_is_found(what: str) -> None:
    found = {violation.what: violation for violation in check(VIOLATIONS[what](good()))}
    assert what in found
    assert found[what].count == len(found[what].examples) == 1
    assert str(found[what]).startswith(f"{what}: 1, as ")


def test_a_line_that_a_kill_cut_off_is_no_step(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("orderly begin 0 3 1-4 20\norderly end 0 3 1-4 2")
    (tmp_path / "a").write_text("lite end 1 2 0-5 10\n")
    assert read_deliveries([tmp_path / "b", tmp_path / "a", tmp_path / "none"]) == [
        Delivery("lite", END, (1, 2), "0-5", 10, "a"),
        Delivery(ORDERLY, BEGIN, (0, 3), "1-4", 20, "b"),
    ]
