"""Maps each request code to the part of the broker that answers it.

Source: `BrokerController.registerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from rmqfast.broker.access import access_processors
from rmqfast.broker.clean_processor import CleanProcessor
from rmqfast.broker.clients.client_call_processor import ClientCallProcessor
from rmqfast.broker.clients.client_processor import ClientProcessor
from rmqfast.broker.clients.connection_processor import ConnectionProcessor
from rmqfast.broker.clients.queue_locks import QueueLockProcessor
from rmqfast.broker.config_processor import ConfigProcessor
from rmqfast.broker.delay.schedule import DelayOffsetProcessor
from rmqfast.broker.messages.reply_messages import ReplyMessageProcessor, ReplyOptions
from rmqfast.broker.messages.send_back import SendBackProcessor
from rmqfast.broker.offsets.consumer_offset_processor import ConsumerOffsetProcessor
from rmqfast.broker.offsets.reset_offset_processor import ResetOffsetProcessor
from rmqfast.broker.queries.consume_queue_processor import ConsumeQueueProcessor
from rmqfast.broker.queries.consume_stats_processor import ConsumeStatsProcessor
from rmqfast.broker.queries.query_message_processor import QueryMessageProcessor
from rmqfast.broker.queries.queue_bounds_processor import QueueBoundsProcessor
from rmqfast.broker.queries.runtime_info_processor import RuntimeInfoProcessor
from rmqfast.broker.statistics.broker_stats import BrokerStatsProcessor
from rmqfast.broker.tables import BrokerTables
from rmqfast.broker.topics.subscription_group_processor import SubscriptionGroupProcessor
from rmqfast.broker.topics.topic_processor import TopicProcessor
from rmqfast.broker.transactions.end_transaction import EndTransactionProcessor
from rmqfast.errors import ResponseError
from rmqfast.remoting import Again, Processor, Request, RequestCode, ResponseCode

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator

__all__ = ["processors_of"]


def processors_of(
    tables: BrokerTables, *, on_update: Callable[[Mapping[str, str]], object], access: AccessValidator | None = None
) -> tuple[dict[int, Processor], ClientProcessor]:
    """Who answers, by request code; and who hears of connections that ended."""
    clients = _clients(tables)
    parts = (
        _messages(tables),
        clients.processors(),
        _groups_online(tables),
        _administration(tables, on_update),
        _figures(tables),
        tables.preparation.processors(),
        access_processors(tables.config(), access),
    )
    processors: dict[int, Processor] = {}
    for part in parts:
        processors |= part
    if tables.config().is_slave:
        processors |= _of_slave()
    return processors, clients


def _of_slave() -> dict[int, Processor]:
    """What is answered otherwise on a slave: topics and groups are its master's, and so are messages."""
    changes = (
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
    )
    sends = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
    return {
        **dict.fromkeys(changes, _refuse_change),
        # the data plane refuses them; no topic is made for them before
        **dict.fromkeys(sends, lambda _: Again()),
        RequestCode.END_TRANSACTION: _refuse_end,
    }


def _refuse_change(_request: Request) -> NoReturn:
    """Source: `AdminBrokerProcessor.validateSlave`."""
    remark = "Can't modify topic or subscription group from slave broker, please execute it from master broker."
    raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)


def _refuse_end(_request: Request) -> NoReturn:
    """Source: `EndTransactionProcessor.processRequest`."""
    raise ResponseError(ResponseCode.SLAVE_NOT_AVAILABLE, "a slave ends no transaction")


def _clients(tables: BrokerTables) -> ClientProcessor:
    return ClientProcessor(
        tables.data_plane,
        consumers=tables.consumers,
        producers=tables.producers,
        filters=tables.filters,
        find_group=tables.groups.find,
        is_known=lambda name: tables.groups.get(name) is not None,
        names=tables.names,
        create_retry_topics=tables.topics.create_missing,
        now=tables.now,
        notify=tables.notifier.take,
    )


def _messages(tables: BrokerTables) -> dict[int, Processor]:
    config = tables.config()
    send_back = SendBackProcessor(
        tables.live,
        tables.appends.append,
        find_group=tables.groups.find,
        make_topic=tables.preparation.make_topic,
        is_writable=lambda: bool(tables.config().number("brokerPermission") & 2),
        broker_ip=config.text("brokerIP1"),
        sent_back=tables.count_sent_back,
    )
    reply = ReplyMessageProcessor(
        tables.appends.append_reply,
        find_channel=tables.producers.channel,
        check=tables.preparation.topic_for,
        options=ReplyOptions(
            config.broker_address,
            config.text("regionId"),
            config.flag("traceOn"),
            config.flag("storeReplyMessageEnable"),
        ),
        now=tables.now,
    )
    end = EndTransactionProcessor(tables.half, tables.live, max_message_size=config.number("maxMessageSize"))
    query = QueryMessageProcessor(tables.live, tables.config)
    return send_back.processors() | reply.processors() | end.processors() | query.processors()


def _groups_online(tables: BrokerTables) -> dict[int, Processor]:
    name = tables.config().text("brokerName")
    reset = ResetOffsetProcessor(
        consumers=tables.consumers,
        offsets=tables.offsets,
        store=tables.live,
        find_topic=tables.topics.get,
        broker_name=name,
    )
    return (
        ConnectionProcessor(tables.consumers, tables.producers).processors()
        | QueueLockProcessor(tables.locks, tables.now).processors()
        | ConsumerOffsetProcessor(tables.offsets, tables.consumers, tables.topics.get).processors()
        | ClientCallProcessor(tables.consumers, tables.live, name).processors()
        | reset.processors()
    )


def _administration(tables: BrokerTables, on_update: Callable[[Mapping[str, str]], object]) -> dict[int, Processor]:
    config = ConfigProcessor(
        tables.configuration, tables.topics, tables.data_plane, now=tables.now, on_update=on_update
    )
    return (
        TopicProcessor(tables.topics, tables.offsets, tables.store, tables.stats, tables.config).processors()
        | SubscriptionGroupProcessor(tables.groups, tables.offsets, tables.stats, tables.config).processors()
        | config.processors()
        | CleanProcessor(tables.store, tables.topics).processors()
    )


def _figures(tables: BrokerTables) -> dict[int, Processor]:
    consume_stats = ConsumeStatsProcessor(
        tables.config,
        tables.topics,
        tables.live,
        groups=tables.groups,
        consumers=tables.consumers,
        offsets=tables.offsets,
        stats=tables.stats,
        now=tables.now,
    )
    runtime_info = RuntimeInfoProcessor(
        tables.config,
        tables.root,
        tables.live,
        tables.store_stats,
        schedule=tables.schedule.running_stats,
        unflushed=tables.unflushed,
        integrity=tables.integrity.figures,
        now=tables.now,
    )
    return (
        consume_stats.processors()
        | runtime_info.processors()
        | QueueBoundsProcessor(tables.live).processors()
        | ConsumeQueueProcessor(tables.topics, tables.live, tables.consumers).processors()
        | BrokerStatsProcessor(tables.stats).processors()
        | DelayOffsetProcessor(tables.schedule.offsets).processors()
    )
