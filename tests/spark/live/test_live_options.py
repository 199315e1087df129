"""A read of topics says which ones in one way, and shows no secret; `tests/spark/test_requests.py` has each option."""

from __future__ import annotations

import pickle

import pytest

from rmqfast._native import TopicRead
from rmqfast.errors import ArgumentError

#: Which topics; a read has one of them.
TOPICS = {
    "Topic": " orders ",
    "subscribe": "orders, bills",
    "subscribepattern": "orders-.*",
    "assign": '{"orders": {"broker-a": [0]}}',
}


@pytest.mark.parametrize("name", TOPICS)
def test_a_read_says_its_topics_in_one_way(name: str) -> None:
    options = {"nameServer": "10.0.0.1:9876", name: TOPICS[name]}
    TopicRead("topic batch", options, ["tags"])
    other = "topic" if name == "assign" else "assign"
    with pytest.raises(
        ArgumentError, match="options topic, subscribe, subscribePattern, assign: expected one of them, g"
    ):
        TopicRead("topic batch", options | {other: TOPICS["assign"]}, ["tags"])


def test_a_read_that_goes_to_a_task_shows_no_secret() -> None:
    options = {"nameServer": "10.0.0.1:9876", "topic": "orders", "accessKey": "me", "secretKey": "hidden"}
    read = pickle.loads(pickle.dumps(TopicRead("topic batch", options, ["tags"])))  # noqa: S301
    assert "hidden" not in repr(read)
