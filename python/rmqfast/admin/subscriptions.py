"""What a group wants: what its brokers keep for all members, beside what each member says of itself.

Source: `ConsumerConnectionSubCommand`, `ConsumerStatusSubCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.admin.facts import SubscriptionFacts
from rmqfast.client.consumer.subscription_conflicts import meaning_of
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import RemotingError
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: What each member says of itself by client id, or why it does not.
Infos = Mapping[str, ConsumerRunningInfo | RemotingError]


def subscriptions_of(kept: Mapping[str, SubscriptionData], members: Infos) -> list[SubscriptionFacts]:
    """What is kept for a group and what its members want, topic by topic; topics of retries are left out.

    Args:
        kept: What the brokers keep, by topic.
        members: The members.

    Example:
        >>> a = SubscriptionData(topic="t", sub_string="A", tags_set=("A",), sub_version=1)
        >>> b = SubscriptionData(topic="t", sub_string="B", tags_set=("B",), sub_version=2)
        >>> members = {name: ConsumerRunningInfo(subscriptions={"t": own}) for name, own in (("c1", a), ("c2", b))}
        >>> found = subscriptions_of({"t": b}, members)
        >>> [(each.client_id, each.subscription.sub_string, each.differs) for each in found]
        [(None, 'B', None), ('c1', 'A', True), ('c2', 'B', False)]
    """
    own = [info.subscriptions for info in members.values() if isinstance(info, ConsumerRunningInfo)]
    topics = sorted({topic for each in (kept, *own) for topic in each if not topic.startswith(RETRY_PREFIX)})
    found = []
    for topic in topics:
        found.append(SubscriptionFacts(topic=topic, subscription=kept.get(topic)))
        found += [_of_member(topic, name, members[name], kept.get(topic)) for name in sorted(members)]
    return found


def _of_member(
    topic: str, client_id: str, info: ConsumerRunningInfo | RemotingError, kept: SubscriptionData | None
) -> SubscriptionFacts:
    if isinstance(info, RemotingError):
        return SubscriptionFacts(topic=topic, client_id=client_id, problem=str(info))
    own = info.subscriptions.get(topic)
    return SubscriptionFacts(
        topic=topic,
        client_id=client_id,
        subscription=own,
        queues=info.queues_of(topic),
        differs=meaning_of(own) != meaning_of(kept),
    )
