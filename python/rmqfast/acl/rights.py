"""The permissions that each request code needs, as a table.

`strict` is the default. `java` repeats the checks of the 4.9.4 broker, which leave gaps. An account without any right
can send batches and replies to any topic, make itself an administrator (50) and read all secrets (54). An account with
SUB for one group can send to the retry topics of all groups and copy any message into its own.

Source: `PlainAccessValidator.parse`, `Permission.ADMIN_CODE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.acl.resources import (
    RecordResources,
    Resources,
    consuming,
    ending,
    heartbeat,
    java_sending,
    knowing,
    locking,
    member,
    receiving,
    replying,
    sending,
    sending_back,
)
from rmqfast.remoting import RequestCode


@dataclass(frozen=True, slots=True)
class Requirement:
    """Requirements of a request, in addition to an account and a valid signature.

    Attributes:
        admin: Whether the account must be an administrator's.
        resources: Finds the needed permissions from header and body; `None` if no permission is needed.
        of_record: Finds the needed permissions for the stored message that the request names.
    """

    admin: bool = False
    resources: Resources | None = None
    of_record: RecordResources | None = None


@dataclass(frozen=True, slots=True)
class Right:
    """One row of the table of rights.

    Attributes:
        java: Requirements of the broker of 4.9.4.
        strict: Requirements of the default mode.
        reason: Explanation of the requirements.
    """

    java: Requirement
    strict: Requirement
    reason: str


ACCOUNT = Requirement()
ADMIN = Requirement(admin=True)


def _same(need: Requirement, reason: str) -> Right:
    return Right(need, need, reason)


def _stricter(need: Requirement, reason: str) -> Right:
    return Right(ACCOUNT, need, reason)


def _sub(topic: str | None = None, group: str | None = None) -> Requirement:
    return Requirement(resources=receiving(topic=topic, group=group))


def _java_sub(topic: str | None = None, group: str | None = None) -> Requirement:
    return Requirement(resources=consuming(topic=topic, group=group))


_JAVA_SEND = Requirement(resources=java_sending("topic", "group"))
_JAVA_SEND_V2 = Requirement(resources=java_sending("b", "a"))
_SEND = Requirement(resources=sending("topic", "group", "properties"))
_SEND_V2 = Requirement(resources=sending("b", "a", "i"))
_SEND_BATCH = Requirement(resources=sending("b", "a", "i", has_batch=True))
_REPLY = Requirement(resources=replying("topic", "group", "properties"))
_REPLY_V2 = Requirement(resources=replying("b", "a", "i"))
_SUB_OF_GROUP = _java_sub(group="group")
_SEND_BACK = Requirement(resources=consuming(group="group"), of_record=sending_back)
_END = Requirement(of_record=ending)
_JAVA_PULL = _java_sub("topic", "consumerGroup")
_PULL = _sub("topic", "consumerGroup")
_ANY_OF_TOPIC = Requirement(resources=knowing)
_SUB_OF_LOCK = Requirement(resources=locking)

_TELLS = "tells of the broker or of its topics and groups, as any client may ask"
_ROUTES = "routes and names: what each client needs to find its brokers"
_CHANGES = "changes what others rely on"
_SECRETS = "shows or changes accounts and their secrets"
_ASKED_BY_BROKER = "a broker asks it of its clients; none answers it"
_BROKERS = "brokers send it to their name server, with an account of their own"
_OFFSETS_OF_TOPIC = "where a queue begins and ends: for those who send to the topic or receive from it"

#: Rights by request code.
RIGHTS: dict[int, Right] = {
    # messages
    RequestCode.SEND_MESSAGE: Right(
        _JAVA_SEND,
        _SEND,
        "PUB on the topic; SUB as the group whose retries or dead letters it has",
    ),
    RequestCode.SEND_MESSAGE_V2: Right(_JAVA_SEND_V2, _SEND_V2, "as 10, with short names of the fields"),
    RequestCode.SEND_BATCH_MESSAGE: _stricter(
        _SEND_BATCH, "as 310, with the properties of each message; Java forgot it"
    ),
    RequestCode.SEND_REPLY_MESSAGE: _stricter(_REPLY, "as 10, but for topics of replies: it is stored where it says"),
    RequestCode.SEND_REPLY_MESSAGE_V2: _stricter(_REPLY_V2, "as 324, with short names of the fields"),
    RequestCode.CONSUMER_SEND_MSG_BACK: Right(
        _SUB_OF_GROUP, _SEND_BACK, "SUB as the group that will get it again, and on the topic of the message"
    ),
    RequestCode.END_TRANSACTION: _stricter(_END, "PUB on the topic that the half message was sent to"),
    RequestCode.PULL_MESSAGE: Right(
        _JAVA_PULL, _PULL, "SUB on the topic and as the group, and as the one whose dead letters the topic has"
    ),
    RequestCode.LITE_PULL_MESSAGE: Right(_JAVA_PULL, _PULL, "as 11; 4.9.4 does not know it"),
    RequestCode.QUERY_MESSAGE: Right(_java_sub("topic"), _sub("topic"), "SUB on the topic, as 11: it reads messages"),
    RequestCode.VIEW_MESSAGE_BY_ID: _stricter(ADMIN, "reads a message of any topic, as it names none"),
    RequestCode.QUERY_CONSUME_QUEUE: _stricter(_ANY_OF_TOPIC, "shows the units of a queue"),
    # offsets
    RequestCode.QUERY_BROKER_OFFSET: _same(ACCOUNT, "nobody answers it"),
    RequestCode.QUERY_CONSUMER_OFFSET: _stricter(_PULL, "SUB on the topic and as the group, as 15"),
    RequestCode.UPDATE_CONSUMER_OFFSET: Right(
        _JAVA_PULL, _PULL, "SUB on the topic and as the group, as 11: it decides what is consumed"
    ),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _stricter(_ANY_OF_TOPIC, _OFFSETS_OF_TOPIC),
    RequestCode.GET_MAX_OFFSET: _stricter(_ANY_OF_TOPIC, _OFFSETS_OF_TOPIC),
    RequestCode.GET_MIN_OFFSET: _stricter(_ANY_OF_TOPIC, _OFFSETS_OF_TOPIC),
    RequestCode.GET_EARLIEST_MSG_STORETIME: _stricter(_ANY_OF_TOPIC, _OFFSETS_OF_TOPIC),
    RequestCode.GET_ALL_CONSUMER_OFFSET: _same(ACCOUNT, _TELLS),
    RequestCode.GET_ALL_DELAY_OFFSET: _same(ACCOUNT, _TELLS),
    RequestCode.QUERY_CORRECTION_OFFSET: _same(ACCOUNT, _TELLS),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _stricter(ADMIN, _CHANGES),
    RequestCode.CLONE_GROUP_OFFSET: _stricter(ADMIN, _CHANGES),
    # clients
    RequestCode.HEART_BEAT: Right(
        Requirement(resources=heartbeat),
        Requirement(resources=member),
        "SUB on all topics and as all groups that it names, as 11",
    ),
    RequestCode.UNREGISTER_CLIENT: _same(_java_sub(group="consumerGroup"), "SUB as the group that is left"),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _same(
        _java_sub(group="consumerGroup"), "SUB as the group: members ask for it"
    ),
    RequestCode.CHECK_CLIENT_CONFIG: _same(ACCOUNT, "says whether an expression parses"),
    RequestCode.LOCK_BATCH_MQ: _stricter(_SUB_OF_LOCK, "SUB as the group: who holds the lock keeps the others out"),
    RequestCode.UNLOCK_BATCH_MQ: _stricter(_SUB_OF_LOCK, "SUB as the group, as 41"),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: _same(ACCOUNT, _TELLS),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: _same(ACCOUNT, _TELLS),
    RequestCode.GET_ALL_PRODUCER_INFO: _same(ACCOUNT, _TELLS),
    RequestCode.GET_CONSUMER_RUNNING_INFO: _stricter(
        _sub(group="consumerGroup"), "SUB as the group whose client is asked"
    ),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _stricter(
        _sub("topic", "group"), "SUB as the group that is asked"
    ),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _stricter(ADMIN, "makes a client consume a message again"),
    RequestCode.CHECK_TRANSACTION_STATE: _same(ACCOUNT, _ASKED_BY_BROKER),
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: _same(ACCOUNT, _ASKED_BY_BROKER),
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET: _same(ACCOUNT, _ASKED_BY_BROKER),
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: _same(ACCOUNT, _ASKED_BY_BROKER),
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: _same(ACCOUNT, _ASKED_BY_BROKER),
    # topics, groups, the broker itself
    RequestCode.UPDATE_AND_CREATE_TOPIC: _same(ADMIN, _CHANGES),
    RequestCode.DELETE_TOPIC_IN_BROKER: _same(ADMIN, _CHANGES),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _same(ADMIN, _CHANGES),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: _same(ADMIN, _CHANGES),
    RequestCode.UPDATE_BROKER_CONFIG: _same(ADMIN, _CHANGES),
    RequestCode.GET_BROKER_CONFIG: _stricter(ADMIN, "shows paths and settings of the machine"),
    RequestCode.GET_BROKER_RUNTIME_INFO: _same(ACCOUNT, _TELLS),
    RequestCode.GET_ALL_TOPIC_CONFIG: _same(ACCOUNT, _TELLS),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _same(ACCOUNT, _TELLS),
    RequestCode.GET_TOPIC_STATS_INFO: _same(ACCOUNT, _TELLS),
    RequestCode.GET_CONSUME_STATS: _same(ACCOUNT, _TELLS),
    RequestCode.GET_BROKER_CONSUME_STATS: _same(ACCOUNT, _TELLS),
    RequestCode.GET_PULL_LEDGER: _same(ACCOUNT, _TELLS),
    RequestCode.VIEW_BROKER_STATS_DATA: _same(ACCOUNT, _TELLS),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: _same(ACCOUNT, _TELLS),
    RequestCode.QUERY_CONSUME_TIME_SPAN: _same(ACCOUNT, _TELLS),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _same(ACCOUNT, _TELLS),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: _stricter(ADMIN, "removes files"),
    RequestCode.CLEAN_UNUSED_TOPIC: _stricter(ADMIN, "removes files"),
    RequestCode.DELETE_EXPIRED_COMMITLOG: _stricter(ADMIN, "removes files"),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: _stricter(ADMIN, "sends a half message again, whosever it is"),
    RequestCode.REGISTER_FILTER_SERVER: _stricter(ADMIN, "filter servers run code; nobody answers it"),
    RequestCode.REGISTER_MESSAGE_FILTER_CLASS: _stricter(ADMIN, "as 301"),
    # accounts
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: _stricter(ADMIN, _SECRETS),
    RequestCode.DELETE_ACL_CONFIG: _stricter(ADMIN, _SECRETS),
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: _same(ACCOUNT, "the versions of the files, no more"),
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _stricter(ADMIN, _SECRETS),
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: _stricter(ADMIN, _SECRETS),
    # the name server: Java's has no access control
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_BROKER_CLUSTER_INFO: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_TOPICS_BY_CLUSTER: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_UNIT_TOPIC_LIST: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_KV_CONFIG: _same(ACCOUNT, _ROUTES),
    RequestCode.GET_KVLIST_BY_NAMESPACE: _same(ACCOUNT, _ROUTES),
    RequestCode.QUERY_DATA_VERSION: _same(ACCOUNT, _BROKERS),
    RequestCode.REGISTER_BROKER: _stricter(ADMIN, _BROKERS),
    RequestCode.UNREGISTER_BROKER: _stricter(ADMIN, _BROKERS),
    RequestCode.PUT_KV_CONFIG: _stricter(ADMIN, _CHANGES),
    RequestCode.DELETE_KV_CONFIG: _stricter(ADMIN, _CHANGES),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: _stricter(ADMIN, _CHANGES),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: _stricter(ADMIN, _CHANGES),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: _stricter(ADMIN, _CHANGES),
    RequestCode.UPDATE_NAMESRV_CONFIG: _stricter(ADMIN, _CHANGES),
    RequestCode.GET_NAMESRV_CONFIG: _stricter(ADMIN, "shows paths and settings of the machine"),
}

#: Right for a code without a row.
UNKNOWN = Right(ACCOUNT, ADMIN, "nobody has decided who may ask for it")
