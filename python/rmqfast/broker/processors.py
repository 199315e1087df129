"""Maps each request code to the processor that answers it.

Source: RocketMQ's `BrokerController`, `AdminBrokerProcessor`, `EndTransactionProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from rmqfast.broker.access import access_processors
from rmqfast.broker.clean_processor import CleanProcessor
from rmqfast.broker.clients.client_call_processor import ClientCallProcessor
from rmqfast.broker.clients.client_processor import ClientProcessor, ConnectionProcessor
from rmqfast.broker.clients.queue_locks import QueueLockProcessor
from rmqfast.broker.config_processor import ConfigProcessor
from rmqfast.broker.delay.schedule import DelayOffsetProcessor
from rmqfast.broker.ledger.ledger_processor import LedgerProcessor
from rmqfast.broker.messages.reply_messages import ReplyMessageProcessor, ReplyOptions
from rmqfast.broker.messages.send_back import SendBackProcessor
from rmqfast.broker.offsets.consumer_offset_processor import ConsumerOffsetProcessor, ResetOffsetProcessor
from rmqfast.broker.queries.broker_details import BrokerDetails
from rmqfast.broker.queries.consume_stats_processor import ConsumeStatsProcessor
from rmqfast.broker.queries.query_message_processor import QueryMessageProcessor
from rmqfast.broker.queries.queue_processor import ConsumeQueueProcessor, QueueBoundsProcessor
from rmqfast.broker.queries.runtime_info_processor import RuntimeInfoProcessor
from rmqfast.broker.state import BrokerState
from rmqfast.broker.statistics.broker_stats import BrokerStatsProcessor
from rmqfast.broker.topics.subscription_group_processor import SubscriptionGroupProcessor
from rmqfast.broker.topics.topic_processor import TopicProcessor
from rmqfast.broker.transactions.end_transaction import EndTransactionProcessor
from rmqfast.errors import ResponseError
from rmqfast.remoting import Again, Processor, Request, RequestCode, ResponseCode

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator


def processors_of(
    state: BrokerState, *, on_update: Callable[[Mapping[str, str]], object], access: AccessValidator | None = None
) -> tuple[dict[int, Processor], ClientProcessor]:
    """Returns the processors by request code, and the client processor, which also handles closed connections."""
    clients = _clients(state)
    parts = (
        _messages(state),
        clients.processors(),
        _groups_online(state),
        _administration(state, on_update),
        _figures(state),
        state.preparation.processors(),
        access_processors(state.config(), access),
    )
    processors: dict[int, Processor] = {}
    for part in parts:
        processors |= part
    if state.config().is_slave:
        processors |= _of_slave()
    return processors, clients


def _of_slave() -> dict[int, Processor]:
    """Returns those processors of a slave that differ from a master's. A slave must not change topics or messages."""
    changes = (
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
    )
    sends = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
    return {
        **dict.fromkeys(changes, _refuse_change),
        # The data plane refuses sends; do not create topics for them before.
        **dict.fromkeys(sends, lambda _: Again()),
        RequestCode.END_TRANSACTION: _refuse_end,
    }


def _refuse_change(_request: Request) -> NoReturn:
    remark = "Can't modify topic or subscription group from slave broker, please execute it from master broker."
    raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)


def _refuse_end(_request: Request) -> NoReturn:
    raise ResponseError(ResponseCode.SLAVE_NOT_AVAILABLE, "a slave ends no transaction")


def _clients(state: BrokerState) -> ClientProcessor:
    return ClientProcessor(
        state.data_plane,
        consumers=state.consumers,
        producers=state.producers,
        filters=state.filters,
        find_group=state.groups.find,
        is_known=lambda name: state.groups.get(name) is not None,
        names=state.names,
        create_retry_topics=state.topics.create_missing,
        now=state.now,
        notify=state.notifier.take,
    )


def _messages(state: BrokerState) -> dict[int, Processor]:
    config = state.config()
    send_back = SendBackProcessor(
        state.live,
        state.appends.append,
        find_group=state.groups.find,
        make_topic=state.preparation.make_topic,
        # Bit 2 of the permission allows writes.
        is_writable=lambda: bool(state.config().number("brokerPermission") & 2),
        broker_ip=config.text("brokerIP1"),
        sent_back=state.count_sent_back,
    )
    reply = ReplyMessageProcessor(
        state.appends.append_reply,
        find_channel=state.producers.channel,
        check=state.preparation.topic_for,
        options=ReplyOptions(
            config.broker_address,
            config.text("regionId"),
            config.flag("traceOn"),
            config.flag("storeReplyMessageEnable"),
        ),
        now=state.now,
    )
    end = EndTransactionProcessor(state.half, state.live, max_message_size=config.number("maxMessageSize"))
    query = QueryMessageProcessor(state.live, state.config)
    return send_back.processors() | reply.processors() | end.processors() | query.processors()


def _groups_online(state: BrokerState) -> dict[int, Processor]:
    name = state.config().text("brokerName")
    reset = ResetOffsetProcessor(
        consumers=state.consumers,
        offsets=state.offsets,
        store=state.live,
        find_topic=state.topics.get,
        broker_name=name,
        note_reset=state.data_plane.note_reset,
    )
    return (
        ConnectionProcessor(state.consumers, state.producers).processors()
        | QueueLockProcessor(state.locks, state.now).processors()
        | ConsumerOffsetProcessor(state.offsets, state.consumers, state.topics.get).processors()
        | ClientCallProcessor(state.consumers, state.live, name).processors()
        | reset.processors()
        | ({} if state.ledger is None else LedgerProcessor(state.ledger).processors())
    )


def _administration(state: BrokerState, on_update: Callable[[Mapping[str, str]], object]) -> dict[int, Processor]:
    config = ConfigProcessor(state.configuration, state.topics, state.data_plane, now=state.now, on_update=on_update)
    return (
        TopicProcessor(
            state.topics,
            state.offsets,
            state.store,
            state.stats,
            state.config,
            on_delete=lambda name: None if state.ledger is None else state.ledger.remove_topic(name),
        ).processors()
        | SubscriptionGroupProcessor(state.groups, state.offsets, state.stats, state.config).processors()
        | config.processors()
        | CleanProcessor(state.store, state.topics).processors()
    )


def _figures(state: BrokerState) -> dict[int, Processor]:
    consume_stats = ConsumeStatsProcessor(
        state.config,
        state.topics,
        state.live,
        groups=state.groups,
        consumers=state.consumers,
        offsets=state.offsets,
        stats=state.stats,
        details=BrokerDetails(
            state.topics, state.live, consumers=state.consumers, producers=state.producers, stats=state.stats
        ),
        now=state.now,
    )
    runtime_info = RuntimeInfoProcessor(
        state.config,
        state.root,
        state.live,
        state.store_stats,
        schedule=state.schedule.running_stats,
        unflushed=state.bytes_to_flush,
        integrity=state.integrity.figures,
        now=state.now,
    )
    return (
        consume_stats.processors()
        | runtime_info.processors()
        | QueueBoundsProcessor(state.live).processors()
        | ConsumeQueueProcessor(state.topics, state.live, state.consumers).processors()
        | BrokerStatsProcessor(state.stats).processors()
        | DelayOffsetProcessor(state.schedule.offsets).processors()
    )
