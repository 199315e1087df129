"""Suggests existing topics and groups for a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from rmqfast.admin import Admin
from rmqfast.client.instance import ClientConfig, ClientErrorCode
from rmqfast.errors import ClientError, ResponseError, RmqError
from rmqfast.remoting import ResponseCode

_UNKNOWN = frozenset({ResponseCode.TOPIC_NOT_EXIST, ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION})
_RETRY, _DEAD = "%RETRY%", "%DLQ%"
_MOST = 3


def suggestion(error: RmqError, arguments: Mapping[str, object], config: ClientConfig) -> str | None:
    """Returns a suggestion if an error says that a topic does not exist. `None` for other errors.

    `arguments` are those of the failed command, with its `topic` and `group`.
    """
    code = error.code if isinstance(error, ResponseError) else getattr(error, "response_code", None)
    if code not in _UNKNOWN or not isinstance(error, ResponseError | ClientError):
        return None
    # An unknown group appears as its missing retry topic.
    is_group = _RETRY in str(error) or _DEAD in str(error)
    wanted = arguments.get("group" if is_group else "topic")
    if not isinstance(wanted, str):
        return None
    try:
        # Topics are only listed after an error, so that a correct name costs nothing.
        with Admin(config=config) as admin:
            topics = admin.topics.all()
    except RmqError:
        return None  # an account may use a topic without the right to list topics
    names = (topic.removeprefix(_RETRY) for topic in topics if topic.startswith("%") == is_group)
    near = near_names(wanted, names)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return None if is_group else "`rmqfast topic list` lists the topics"


def unknown_topic(topic: str, step: str) -> ClientError:
    """Returns the error for a topic that does not exist."""
    code = ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION
    return ClientError(f"no broker of this cluster has the topic {topic}", response_code=code, next_step=step)


def near_names(wanted: str, names: Iterable[str]) -> list[str]:
    """Returns the most similar names, at most three."""
    by_folded = {name.casefold(): name for name in names}
    return [by_folded[each] for each in difflib.get_close_matches(wanted.casefold(), by_folded, _MOST)]
