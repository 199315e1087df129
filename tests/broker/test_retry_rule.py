"""Where messages go that were consumed in vain."""

from __future__ import annotations

import pytest

from rmqfast.broker.messages.send_back import RetryTarget, retry_target, target_of_send
from rmqfast.errors import ResponseError
from rmqfast.store.config import SubscriptionGroupConfig
from tests.broker.client_doubles import Groups, Topics

GROUP = SubscriptionGroupConfig(group_name="g", retry_max_times=16)
DEAD = RetryTarget("%DLQ%g", is_dead=True, delay_level=0)


def again(level: int) -> RetryTarget:
    return RetryTarget("%RETRY%g", is_dead=False, delay_level=level)


@pytest.mark.parametrize(
    ("reconsume_times", "level", "own_limit", "version", "wanted"),
    [
        (0, 0, None, 401, again(3)),
        (1, 0, None, 401, again(4)),
        (15, 0, None, 401, again(18)),
        (16, 0, None, 401, DEAD),
        (17, 5, None, 401, DEAD),
        (0, 5, None, 401, again(5)),
        (0, 99, None, 401, again(99)),
        (0, -1, None, 401, DEAD),
        (2, 0, 2, 401, DEAD),
        (2, 0, 3, 401, again(5)),
        (0, 0, 0, 401, DEAD),
        (20, 0, 100, 401, again(23)),
        (0, 0, -1, 401, DEAD),
        (2, 0, 2, 120, again(5)),
        (2, 0, 2, 121, DEAD),
        (16, 0, 100, 120, DEAD),
    ],
)
def test_a_message_that_is_sent_back(
    reconsume_times: int, level: int, own_limit: int | None, version: int, wanted: RetryTarget
) -> None:
    assert retry_target(GROUP, reconsume_times, level, own_limit=own_limit, version=version) == wanted


@pytest.mark.parametrize(
    ("topic", "reconsume_times", "own_limit", "version", "wanted"),
    [
        ("orders", 99, 0, 401, ("orders", 7)),
        ("%DLQ%g", 99, 0, 401, ("%DLQ%g", 7)),
        ("%RETRY%g", 15, None, 401, ("%RETRY%g", 7)),
        ("%RETRY%g", 16, None, 401, ("%DLQ%g", 0)),
        ("%RETRY%g", 16, 17, 401, ("%RETRY%g", 7)),
        ("%RETRY%g", 16, 17, 120, ("%DLQ%g", 0)),
        ("%RETRY%g", 0, 0, 401, ("%DLQ%g", 0)),
    ],
)
def test_a_message_that_is_sent(
    topic: str, reconsume_times: int, own_limit: int | None, version: int, wanted: tuple[str, int]
) -> None:
    topics = Topics()
    target = target_of_send(
        topic,
        7,
        Groups(GROUP).find,
        topics.make,
        reconsume_times=reconsume_times,
        own_limit=own_limit,
        version=version,
    )
    assert target == wanted
    assert ("%DLQ%g" in topics.table) == (wanted == ("%DLQ%g", 0))
    assert [(t.read_queue_nums, t.write_queue_nums, t.perm) for t in topics.table.values()] in ([], [(1, 1, 6)])


@pytest.mark.parametrize(
    ("topic", "code", "remark"),
    [
        (
            "%RETRY%x",
            26,
            "subscription group not exist, x \nSee http://rocketmq.apache.org/docs/faq/ for further details.",
        ),
        ("%RETRY%g", 1, "topic[%DLQ%g] not exist"),
    ],
)
def test_what_is_answered_where_group_or_topic_is_missing(topic: str, code: int, remark: str) -> None:
    make = Topics(refused=frozenset({"%DLQ%g"})).make
    with pytest.raises(ResponseError) as refused:
        target_of_send(topic, 0, Groups(GROUP).find, make, reconsume_times=16, own_limit=None, version=401)
    assert (refused.value.code, refused.value.remark) == (code, remark)
