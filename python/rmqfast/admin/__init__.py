"""Administration of a cluster: topics, groups, offsets and messages, and explanations of their state."""

from rmqfast.admin.accounts import AccessRules, Account
from rmqfast.admin.admin import Admin
from rmqfast.admin.clusters import BrokerRow
from rmqfast.admin.consume_stats import ConsumeStats, QueueProgress
from rmqfast.admin.explanation import Explanation, Outcome
from rmqfast.admin.facts import (
    CopyFacts,
    CopyKind,
    GroupFacts,
    MemberFacts,
    MessageFacts,
    QueueFacts,
    SqlAnswer,
    SubscriptionFacts,
)
from rmqfast.admin.message_event import EventKind, MessageEvent
from rmqfast.admin.message_page import MessagePage, Position
from rmqfast.admin.message_track import MessageTrack, TrackType
from rmqfast.admin.offsets import OffsetChange
from rmqfast.admin.snapshot import BrokerSnapshot, GroupSummary, MinuteStats, Snapshot, TopicSummary
from rmqfast.admin.topics import TopicOffset
from rmqfast.client.consumer.subscription import SubscriptionConflict
from rmqfast.client.trace import TraceType, TraceView
from rmqfast.remoting.protocol.consumer_connection import Connection, ConsumerConnection
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo, ProcessQueueInfo

__all__ = [
    "AccessRules",
    "Account",
    "Admin",
    "BrokerRow",
    "BrokerSnapshot",
    "Connection",
    "ConsumeStats",
    "ConsumerConnection",
    "ConsumerRunningInfo",
    "CopyFacts",
    "CopyKind",
    "EventKind",
    "Explanation",
    "GroupFacts",
    "GroupSummary",
    "MemberFacts",
    "MessageEvent",
    "MessageFacts",
    "MessagePage",
    "MessageTrack",
    "MinuteStats",
    "OffsetChange",
    "Outcome",
    "Position",
    "ProcessQueueInfo",
    "QueueFacts",
    "QueueProgress",
    "Snapshot",
    "SqlAnswer",
    "SubscriptionConflict",
    "SubscriptionFacts",
    "TopicOffset",
    "TopicSummary",
    "TraceType",
    "TraceView",
    "TrackType",
]
