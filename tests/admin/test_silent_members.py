"""Groups with members that do not answer, or only after others: they are asked together, under one deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from rmqfast import Admin, EmbeddedCluster
from rmqfast.admin import Explanation
from rmqfast.admin.questions import AT_ONCE

from .members import online, wants

TOPIC = "silence"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as running, Admin(name_server=running.name_server) as admin:
        admin.create_topic(TOPIC, queues=1)
        yield running


class Silence:
    """An answer of a member that does not come before `end`."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self.end = self._over.set

    def __call__(self) -> dict[str, Any]:
        self._over.wait()
        return {}


def explained(
    cluster: EmbeddedCluster, group: str, *answers: Callable[[], Any] | None, timeout: float = 5
) -> Explanation:
    """A group with one member for each answer; None answers by itself."""
    with ExitStack() as stack, Admin(name_server=cluster.name_server, timeout=timeout) as admin:
        for number, answer in enumerate(answers):
            more: dict[str, Any] = {} if answer is None else {"running_info": answer}
            stack.enter_context(online(cluster.name_server, f"M{number:02}", group, [wants(TOPIC, "*")], **more))
        # Before the members end, which wait for their answers.
        for silence in {answer for answer in answers if isinstance(answer, Silence)}:
            stack.callback(silence.end)
        return admin.explain(group)


def test_members_are_asked_at_the_same_time(cluster: EmbeddedCluster) -> None:
    everybody = threading.Barrier(3, timeout=3)

    def answer() -> dict[str, Any]:
        everybody.wait()  # none answers before all are asked
        return {}

    assert not [each for each in explained(cluster, "together", *[answer] * 3).sentences if "not known" in each]


def test_a_silent_member_hides_no_other(cluster: EmbeddedCluster) -> None:
    silence = Silence()
    explanation = explained(cluster, "half_silent", silence, None, silence, timeout=1)
    problems = {each.client_id: each.problem for each in explanation.subscriptions if each.client_id}
    known = [name for name, problem in problems.items() if problem is None]
    assert len(problems) == 3
    assert [name.split("@")[1][:3] for name in known] == ["M01"]


def test_more_silent_members_than_a_broker_is_asked_at_a_time_are_told(cluster: EmbeddedCluster) -> None:
    explanation = explained(cluster, "silent", *[Silence()] * (AT_ONCE + 1), timeout=0.5)
    untold = [sentence for sentence in explanation.sentences if sentence.startswith("not known: ")]
    assert len(untold) == AT_ONCE + 1
    assert len([sentence for sentence in untold if "was not asked: the time was over" in sentence]) == 1
