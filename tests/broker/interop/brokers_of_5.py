"""Answers of RocketMQ 5.3.3 that differ from those of 4.9.4 to the same requests."""

from __future__ import annotations

ROUTES = "brokers of 5.x have `enableActingMaster`"
TOPICS = "5.x registers topics of its own that 4.9.4 has not, or not yet"
PAGE = "another address of the same page"
FLAGS = "5.x adds `groupSysFlag`, `topicSysFlag`"
STORED = "5.x stores MSG_REGION, TRACE_ON, WAIT, `__transactionId__` with a message"
NAMED = "5.x adds the transaction id, that is the unique key, to every answer"
BEATS = "5.x says that it takes heartbeats of version 2, and whether a subscription changed"
CHECKS = "5.3.3 asks for an ended transaction, too; it stores more properties, and adds `bname` and `topic`"
IN_JSON = "5.3.3 answers a binary request in JSON"

#: By server, request code and what differs. The version differs everywhere.
ANSWERS: dict[tuple[str, int, str], str] = {
    ("namesrv", 105, "body"): ROUTES,
    ("namesrv", 105, "remark"): PAGE,
    ("namesrv", 106, "body"): ROUTES,
    ("namesrv", 206, "body"): TOPICS,
    ("broker", 11, "body"): STORED,
    ("broker", 11, "fields"): FLAGS,
    ("broker", 12, "body"): STORED,
    (
        "broker",
        14,
        "code",
    ): "where a queue has no message and a group no offset, 4.9.4 says 0, 5.3.3 that there is none",
    ("broker", 14, "remark"): "as its code",
    ("broker", 14, "fields"): "as its code",
    ("broker", 26, "body"): "what can be configured",
    ("broker", 26, "fields"): "its data version has a state besides",
    ("broker", 28, "body"): "what 5.x counts besides",
    ("broker", 31, "remark"): "5.x says the empty text",
    ("broker", 33, "body"): STORED,
    ("broker", 34, "fields"): BEATS,
    ("broker", 39, "body"): CHECKS,
    ("broker", 39, "fields"): CHECKS,
    ("broker", 202, "body"): "5.x tells the rate",
    ("broker", 208, "body"): "5.x tells the offset of pulls",
    ("broker", 215, "code"): "5.3.3 fails where it keeps no timers",
    ("broker", 215, "remark"): "5.3.3 fails where it keeps no timers",
    ("broker", 222, "code"): "5.x resets the offsets of a group that nobody consumes for",
    ("broker", 222, "remark"): "as its code",
    ("broker", 300, "body"): "5.3.3 names a group `wire` besides, for which nobody consumed",
    ("broker", 310, "fields"): NAMED,
    ("broker", 320, "fields"): NAMED,
    ("broker", 361, "body"): STORED,
    ("broker", 361, "fields"): FLAGS,
    **{
        (server, code, what): IN_JSON
        for server, codes in (("namesrv", (105,)), ("broker", (11, 14, 34, 35, 38, 310)))
        for code in codes
        for what in ("serialization", "language")
    },
}
