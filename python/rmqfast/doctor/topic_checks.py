"""Checks of topics: their queues, and the brokers that have them.

Source: `TopicConfig`, `MQClientInstance.topicRouteData2TopicPublishInfo`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rmqfast.broker.topics.topic_manager import SYSTEM_TOPIC_PREFIX, system_topics
from rmqfast.doctor.examination import Examination
from rmqfast.doctor.finding import Finding, Level


def find_unread_queues(examination: Examination) -> Iterator[Finding]:
    """Finds topics with more queues for producers than for consumers: the last ones are never read."""
    for broker in examination.snapshot.brokers:
        for topic, config in sorted((broker.topics or {}).items()):
            reads, writes = config.read_queue_nums, config.write_queue_nums
            if config.is_writable and config.is_readable and reads < writes:
                yield Finding(
                    name="queues-never-read",
                    subject=f"topic {topic}",
                    evidence=f"at {broker.broker_name} producers send to {writes} queues, and consumers read {reads}: "
                    f"nobody reads queue {reads}" + (f" to {writes - 1}" if writes - 1 > reads else ""),
                    next_step=f"`rmqfast topic create {topic} --queues {writes}` makes {writes} for both",
                )


def find_missing_topics(examination: Examination) -> Iterator[Finding]:
    """Finds topics that only some brokers of a cluster have: these get all messages, and new groups may miss them."""
    brokers: dict[str, set[str]] = defaultdict(set)
    for broker in examination.snapshot.brokers:
        if broker.topics is not None:
            brokers[broker.cluster].add(broker.broker_name)
    having: dict[tuple[str, str], set[str]] = defaultdict(set)
    for broker in examination.snapshot.brokers:
        for topic in broker.topics or ():
            having[broker.cluster, topic].add(broker.broker_name)
    for (cluster, topic), names in sorted(having.items()):
        missing = sorted(brokers[cluster] - names)
        if missing and not _is_own(topic, cluster, brokers[cluster]):
            yield Finding(
                name="topic-on-some-brokers",
                subject=f"topic {topic}",
                evidence=f"{', '.join(sorted(names))} {'has' if len(names) == 1 else 'have'} it, and "
                f"{', '.join(missing)} {'does' if len(missing) == 1 else 'do'} not",
                next_step=f"`rmqfast topic create {topic}` makes it on all brokers, if that is not meant so",
                level=Level.ADVICE,
            )


def _is_own(topic: str, cluster: str, brokers: set[str]) -> bool:
    """Whether brokers make a topic by themselves, and each when it needs it."""
    return topic.startswith(("%", SYSTEM_TOPIC_PREFIX)) or any(
        topic in system_topics(cluster, name) for name in brokers
    )


CHECKS = (find_unread_queues, find_missing_topics)
