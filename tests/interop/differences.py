"""Explanations of differences between a client's rows on a broker and on the oldest RocketMQ that can do it."""

from __future__ import annotations

from fnmatch import fnmatch

_NOT_KNOWN = (
    "clients of 5.x ask for a topic's configuration (351), and pull by 361 in a lite consumer: 4.9.4 knows neither"
)
_GROUP = "5.3.3 lists a group with the topic's name besides"
_NO_TIMER = "brokers of 5.x delete no topic where their timer wheel is off, as it is here"
_SYSTEM_TOPICS = "5.x has more system topics"
_STORED = "5.x stores MSG_REGION, TRACE_ON and WAIT with each message: its records are longer"
_FIGURES = "5.x counts and configures more"
_TRANSACTIONS = (
    "5.x adds the transaction's id to answers, and notes ends some seconds late: looking every second, as here, it asks"
    " about transactions that have ended"
)
_LAST_MINUTE = "which groups 5.5.0 calls active, by its figures of the last minute, differs from run to run"
_CODES = "5.x has other codes and texts for errors"

#: Outsider, cluster and scenario, each as a pattern, and why: the first that fits, and only of what a run shows.
EXPLAINED: tuple[tuple[str, str, str, str], ...] = (
    ("java-5.*", "4.9.4", "*", _NOT_KNOWN),
    ("java-5.*", "ours", "dashboard", f"it is held against 5.3.3, as 4.9.4 cannot do it: {_GROUP}; {_NO_TIMER}"),
    ("java-5.*", "ours", "exporter", f"it is held against 5.3.3, as 4.9.4 cannot do it: {_GROUP}"),
    ("java-5.*", "5.5.0", "dashboard", f"it is held against 5.3.3: {_GROUP}"),
    ("java-5.*", "5.5.0", "exporter", f"it is held against 5.3.3: {_GROUP}"),
    ("java-4.9.4", "5.3.3", "dashboard", f"{_GROUP}; {_NO_TIMER}"),
    ("java-4.9.4", "5.3.3", "exporter", _GROUP),
    ("java-4.9.4", "5.5.0", "dashboard", _NO_TIMER),
    ("java-*", "5.*", "errors", "5.x answers 29 to a queue that is not there, 4.9.4 answers 1"),
    ("java-*", "5.*", "pull_offsets", "5.x knows no offset of a queue that is not there, 4.9.4 says 0"),
    (
        "java-*",
        "5.*",
        "transaction",
        _TRANSACTIONS,
    ),
    ("java-*", "5.5.0", "batch", "5.5.0 adds no CLUSTER to the messages of a batch"),
    ("mqadmin", "5.*", "topicRoute -t adm_b", _NO_TIMER),
    ("mqadmin", "5.*", "delete*", _NO_TIMER),
    ("mqadmin", "5.*", "printMsg -t OFFSET_MOVED_EVENT*", "5.x stores no event of an offset that was moved"),
    ("mqadmin", "5.*", "resetOffsetByTime -g adm_nobody*", _CODES),
    ("mqadmin", "5.*", "updateTopic *", _CODES),
    ("mqadmin", "5.*", "*adm_absent*", "errors name another page"),
    ("mqadmin", "5.*", "*adm_nobody*", "errors name another page"),
    ("mqadmin", "5.*", "consumerProgress -g adm_new", "errors name another page"),
    ("mqadmin", "5.*", "resetOffsetByTime*", "5.x resets the offsets of a group without consumers in another way"),
    ("mqadmin", "5.*", "skipAccumulatedMessage*", "5.x resets the offsets of a group without consumers in another way"),
    ("mqadmin", "5.*", "*WritePerm*", _SYSTEM_TOPICS),
    ("mqadmin", "5.*", "topicList", f"{_SYSTEM_TOPICS}; {_NO_TIMER}"),
    ("mqadmin", "5.3.3", "topicList -c", f"{_SYSTEM_TOPICS}; {_GROUP}"),
    ("mqadmin", "5.5.0", "topicList -c", _SYSTEM_TOPICS),
    ("mqadmin", "5.3.3", "statsAll*", f"{_SYSTEM_TOPICS}; {_GROUP}"),
    ("mqadmin", "5.5.0", "statsAll -a", _LAST_MINUTE),
    ("mqadmin", "5.5.0", "statsAll*", _SYSTEM_TOPICS),
    ("mqadmin", "5.*", "query*", _STORED),
    ("mqadmin", "5.*", "printMsg*", _STORED),
    ("mqadmin", "5.*", "consumeMessage*", _STORED),
    ("mqadmin", "5.*", "clusterList*", f"{_FIGURES}, and one that the tool of 4.9.4 asks for has another name"),
    ("mqadmin", "5.*", "brokerStatus*", _FIGURES),
    ("mqadmin", "5.*", "getBrokerConfig*", _FIGURES),
)


def explanation(outsider: str, cluster: str, scenario: str) -> str | None:
    """Why a scenario is different, if it is known."""
    for *patterns, why in EXPLAINED:
        if all(map(fnmatch, (outsider, cluster, scenario), patterns)):
            return why
    return None
