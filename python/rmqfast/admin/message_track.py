"""The fate of a message in each group, in the terms of mqadmin.

Source: `DefaultMQAdminExtImpl.messageTrackDetail`, `DefaultMQAdminExtImpl.consumed`, `MessageTrack`, `TrackType`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.consume_stats import ConsumeStats
from rmqfast.admin.groups import Groups
from rmqfast.errors import ClientError, RemotingError, ResponseError, RmqError
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY, BROADCASTING, PASSIVELY, ConsumerConnection
from rmqfast.remoting.protocol.subscription_data import SUB_ALL

#: Ordinal of version 5.0.0, the first with a track type for broadcasting groups.
VERSION_5 = 413
#: Texts of mqadmin, repeated because scripts compare its answers.
NO_OFFSETS = (
    "Not found the consumer group consume stats, because return offset table is empty, maybe the consumer not "
    "consume any message"
)
BROADCAST = (
    "Not found the consumer group consume stats, because return offset table is empty, the consumer is under the "
    "broadcast mode"
)
BROADCAST_CONSUMPTION = 213


class TrackType(StrEnum):
    """The fate of a message in a group. Only RocketMQ 5.x has `CONSUME_BROADCASTING`."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class MessageTrack:
    """The fate of a message in a group. `CONSUMED` only means that the group's offset is after the message."""

    group: str
    track_type: TrackType
    description: str | None = None


def track_of(client: AdminClient, groups: Groups, message: Any, group: str) -> MessageTrack:
    try:
        members = groups.connections(group)
    except ResponseError as error:
        # As in mqadmin, any other error means UNKNOWN and goes into the description.
        is_offline = error.code == ResponseCode.CONSUMER_NOT_ONLINE
        return MessageTrack(group, TrackType.NOT_ONLINE if is_offline else TrackType.UNKNOWN, _describe(error))
    except RmqError as error:
        return MessageTrack(group, TrackType.UNKNOWN, str(error))
    # As in mqadmin, pull groups are not examined further, even if their offset passed the message.
    if members.consume_type == ACTIVELY:
        return MessageTrack(group, TrackType.PULL)
    if members.consume_type != PASSIVELY:
        return MessageTrack(group, TrackType.UNKNOWN)
    return _track_of_push(client, groups, message, group, members)


def _track_of_push(
    client: AdminClient, groups: Groups, message: Any, group: str, members: ConsumerConnection
) -> MessageTrack:
    try:
        stats = groups.progress(group)
    except (ResponseError, ClientError) as error:
        code = error.code if isinstance(error, ResponseError) else error.response_code
        if code != ResponseCode.CONSUMER_NOT_ONLINE:
            return MessageTrack(group, TrackType.UNKNOWN, _describe(error))
        # 4.9.4 lacks this type: broadcasting groups have no offsets on its brokers and so are NOT_ONLINE.
        if members.message_model == BROADCASTING and _is_version_5(client, group):
            description = f"CODE:{BROADCAST_CONSUMPTION} DESC:{BROADCAST}"
            return MessageTrack(group, TrackType.CONSUME_BROADCASTING, description)
        return MessageTrack(group, TrackType.NOT_ONLINE, _describe(error))
    except RemotingError as error:
        return MessageTrack(group, TrackType.UNKNOWN, str(error))
    return MessageTrack(group, track_type(message, stats, members, _master_addresses(client)))


def _master_addresses(client: AdminClient) -> dict[str, str]:
    brokers = client.cluster_info().brokers
    return {name: broker.addresses[MASTER_ID] for name, broker in brokers.items() if MASTER_ID in broker.addresses}


def _is_version_5(client: AdminClient, group: str) -> bool:
    address = client.brokers_of_group(group)[0].address
    connections = client.api.connections
    return (
        connections.request(address, RequestCode.GET_BROKER_RUNTIME_INFO, {}, timeout=client.timeout).version
        >= VERSION_5
    )


def track_type(
    message: Any, stats: ConsumeStats, members: ConsumerConnection, master_addresses: dict[str, str]
) -> TrackType:
    """Returns the fate of a message in a group of push consumers."""
    passed = any(
        row.topic == message.topic
        and row.queue_id == message.queue_id
        # A message carries the address of its broker, not the name.
        and master_addresses.get(row.broker_name) == message.store_host
        and row.consumer_offset > message.queue_offset
        for row in stats
    )
    if not passed:
        return TrackType.NOT_CONSUME_YET
    # The present subscription; mqadmin, too, ignores that another one may have applied earlier.
    subscription = members.subscriptions.get(message.topic)
    tags = () if subscription is None else subscription.tags_set
    if tags and message.tags not in tags and SUB_ALL not in tags:
        return TrackType.CONSUMED_BUT_FILTERED
    return TrackType.CONSUMED


def _describe(error: ResponseError | ClientError) -> str:
    if isinstance(error, ResponseError):
        return f"CODE:{error.code} DESC:{error.remark}"
    has_none = error.response_code == ResponseCode.CONSUMER_NOT_ONLINE
    return f"CODE:{error.response_code} DESC:{NO_OFFSETS if has_none else error}"
