"""mqadmin's consumerProgress, updateSubGroup, deleteSubGroup and resetOffsetByTime.

Source: `ConsumerProgressSubCommand`, `UpdateSubGroupSubCommand`, `DeleteSubscriptionGroupCommand`,
`ResetOffsetByTimeCommand`, `ResetOffsetByTimeOldCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from rmqfast.admin import ConsumerRunningInfo
from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, AdminClient
from rmqfast.admin.groups import Groups, delete_group, put_group
from rmqfast.admin.members import Members
from rmqfast.admin.offsets import Rollback, reset_offline, reset_online
from rmqfast.admin.topics import Topics
from rmqfast.cli.mqadmin.command import PLACES, Flag, JavaCommand, Values, masters_of, number_of, place_of
from rmqfast.cli.mqadmin.java import decimal_text, front, milliseconds_of, queues_in_order, seconds_text, word
from rmqfast.cli.mqadmin.topics import delete_topic
from rmqfast.cli.output import say
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY, PASSIVELY
from rmqfast.remoting.version_names import version_name
from rmqfast.store.config import SubscriptionGroupConfig

T = TypeVar("T")


def show_progress(client: AdminClient, values: Values) -> None:
    groups = Groups(client, Topics(client))
    if values["g"] is None:
        _print_groups(client, groups)
        return
    stats = groups.progress(values["g"])
    owners = _owners(client, values["g"]) if (values["s"] or "").lower() == "true" else None
    name = f"{'#Topic':<64}  {'#Broker Name':<32}  {'#QID':<4}  {'#Broker Offset':<20}  {'#Consumer Offset':<20}"
    owner = "" if owners is None else f"  {'#Client IP':<20} "
    print(f"{name}{owner or '  '}{'#Diff':<20}  #LastTime")
    for row in stats:
        offsets = f"{row.queue_id:<4}  {row.broker_offset:<20}  {row.consumer_offset:<20}"
        owner = "  " if owners is None else f"  {owners.get(row.queue, 'N/A'):<20} "
        last = seconds_text(row.last_timestamp) if row.last_timestamp else "N/A"
        print(f"{front(row.topic, 64):<64}  {front(row.broker_name, 32):<32}  {offsets}{owner}{row.diff:<20}  {last}")
    print(f"\nConsume TPS: {decimal_text(stats.consume_tps, 2)}\nDiff Total: {stats.diff_total}")


def _owners(client: AdminClient, group: str) -> Mapping[MessageQueue, str]:
    """Returns the address of each queue's owner. Empty if the members do not tell."""
    try:
        infos = Members(client, group).infos(client.brokers_of_group(group)[:1])
    except RemotingError:
        return {}
    return {
        queue: client_id.partition("@")[0]
        for client_id, info in infos.items()
        if isinstance(info, ConsumerRunningInfo)
        for queue in info.queues
    }


def _print_groups(client: AdminClient, groups: Groups) -> None:
    print(f"{'#Group':<64}  {'#Count':<6}  {'#Version':<24} {'#Type':<5}  {'#Model':<14}  {'#TPS':<7}  #Diff Total")
    for topic in hash_order(client.api.all_topics(timeout=client.timeout)):
        if topic.startswith(RETRY_PREFIX):
            group = topic.removeprefix(RETRY_PREFIX)
            stats, known = _answer_or_none(groups.progress, group), _answer_or_none(groups.connections, group)
            members = known.connections if known else ()
            version = version_name(min(each.version for each in members)) if members else "OFFLINE"
            kind = "" if not known else "PULL" if known.consume_type == ACTIVELY else "PUSH"
            model = known.message_model if known and known.consume_type == PASSIVELY else ""
            tps, diff = (int(stats.consume_tps), stats.diff_total) if stats else (0, 0)
            figures = f"{kind:<5}  {model:<14}  {tps:<7}  {diff}"
            print(f"{front(group, 64):<64}  {len(members):<6}  {version:<24} {figures}")


def _answer_or_none(request: Callable[[str], T], group: str) -> T | None:
    """Returns the answer about a group. As in Java, the line of a group of which nothing is told stays."""
    try:
        return request(group)
    except (RemotingError, ClientError) as error:
        code = error.code if isinstance(error, ResponseError) else getattr(error, "response_code", None)
        if code != ResponseCode.CONSUMER_NOT_ONLINE:
            say(f"group {group}: {error}")
        return None


def update_group(client: AdminClient, values: Values) -> None:
    address, cluster = place_of("updateSubGroup", values)
    config = SubscriptionGroupConfig(
        group_name=values["g"],
        consume_enable=_flag(values["s"], default=True),
        consume_from_min_enable=_flag(values["m"], default=False),
        consume_broadcast_enable=_flag(values["d"], default=False),
        retry_queue_nums=number_of(values, "q", 1),
        retry_max_times=number_of(values, "r", 16),
        broker_id=number_of(values, "i", 0),
        which_broker_when_consume_slowly=number_of(values, "w", 1),
        notify_consumer_ids_changed_enable=_flag(values["a"], default=True),
    )
    for each in [address] if address else masters_of(client, cluster or ""):
        put_group(client, client.translate(each), config)
        print(f"create subscription group to {each} success.")
    print(
        f"SubscriptionGroupConfig [groupName={config.group_name}, consumeEnable={word(config.consume_enable)}, "
        f"consumeFromMinEnable={word(config.consume_from_min_enable)}, "
        f"consumeBroadcastEnable={word(config.consume_broadcast_enable)}, retryQueueNums={config.retry_queue_nums}, "
        f"retryMaxTimes={config.retry_max_times}, brokerId={config.broker_id}, "
        f"whichBrokerWhenConsumeSlowly={config.which_broker_when_consume_slowly}, "
        f"notifyConsumerIdsChangedEnable={word(config.notify_consumer_ids_changed_enable)}]",
        end="",
    )


def remove_group(client: AdminClient, values: Values) -> None:
    (address, cluster), group = place_of("deleteSubGroup", values), values["g"]
    for each in [address] if address else masters_of(client, cluster or ""):
        delete_group(client, client.translate(each), group, remove_offsets=values["r"] == "true")
        place = "" if address else f" in cluster [{cluster}]"
        print(f"delete subscription group [{group}] from broker [{each}]{place} success.")
    if cluster and not address:
        for prefix in (RETRY_PREFIX, DLQ_PREFIX):
            delete_topic(client, prefix + group, cluster)


def reset_by_time(client: AdminClient, values: Values) -> None:
    group, topic, text = values["g"], values["t"], values["s"]
    timestamp, force = milliseconds_of(text), _flag(values["f"], default=True)
    place = f"topic[{topic}], force[{word(force)}], timestamp(string)[{text}], timestamp(long)[{timestamp}]"
    brokers = client.brokers_of(topic)
    try:
        offsets: dict[MessageQueue, int] = {}
        for broker in brokers:
            offsets |= reset_online(client, broker, group, topic, timestamp, force=force)
    except ResponseError as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        rows = [
            row for broker in brokers for row in reset_offline(client, broker, group, topic, timestamp, force=force)
        ]
        print(f"rollback consumer offset by specified consumerGroup[{group}], {place}")
        _print_rollbacks(rows)
        return
    print(f"rollback consumer offset by specified group[{group}], {place}")
    print(f"{'#brokerName':<40}  {'#queueId':<40}  {'#offset':<40}")
    for queue in queues_in_order(offsets):
        print(f"{front(queue.broker_name, 32):<40}  {queue.queue_id:<40}  {offsets[queue]:<40}")


def _print_rollbacks(rows: Sequence[Rollback]) -> None:
    names = ("#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset", "#rollbackOffset")
    print("  ".join(f"{name:<20}" for name in names))
    by_queue = {row.queue: row for row in rows}
    for row in (by_queue[queue] for queue in queues_in_order(by_queue)):
        offsets = (row.broker_offset, row.consumer_offset, row.timestamp_offset, row.rollback_offset)
        cells = (front(row.queue.broker_name, 32), row.queue.queue_id, *offsets)
        print("  ".join(f"{cell!s:<20}" for cell in cells))


def _flag(text: str | None, *, default: bool) -> bool:
    """Returns a flag as Java parses it: everything but `true` is false."""
    return default if text is None else text.lower() == "true"


_GROUP = Flag("g", "groupName", is_required=True)
COMMANDS = (
    JavaCommand("consumerProgress", (Flag("g", "groupName"), Flag("s", "showClientIP")), show_progress),
    JavaCommand(
        "updateSubGroup",
        (
            *PLACES,
            _GROUP,
            Flag("s", "consumeEnable"),
            Flag("m", "consumeFromMinEnable"),
            Flag("d", "consumeBroadcastEnable"),
            Flag("q", "retryQueueNums"),
            Flag("r", "retryMaxTimes"),
            Flag("i", "brokerId"),
            Flag("w", "whichBrokerWhenConsumeSlowly"),
            Flag("a", "notifyConsumerIdsChanged"),
        ),
        update_group,
    ),
    JavaCommand("deleteSubGroup", (*PLACES, _GROUP, Flag("r", "removeOffset")), remove_group),
    JavaCommand(
        "resetOffsetByTime",
        (
            Flag("g", "group", is_required=True),
            Flag("t", "topic", is_required=True),
            Flag("s", "timestamp", is_required=True),
            Flag("f", "force"),
        ),
        reset_by_time,
    ),
)
