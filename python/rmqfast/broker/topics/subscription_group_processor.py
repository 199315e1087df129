"""Answers the requests that make, change, delete and list consumer groups.

Source: `AdminBrokerProcessor`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from rmqfast.broker.clients.consumers import CommittedOffsets
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.statistics.broker_stats import BrokerStats
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.errors import RemotingProtocolError, ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.store.config import SubscriptionGroupConfig
from rmqfast.store.config.value import java_name

_log = logging.getLogger(__name__)
GET_SUBSCRIPTIONGROUP_CONFIG = 352
MAX_RETRY_QUEUES = 65_536
_LONG = 1 << 63
_INT = 1 << 31
_LONGEST = 20


class SubscriptionGroupProcessor:
    """Requests 200, 201 and 207, and 352 of 5.x."""

    def __init__(
        self,
        groups: SubscriptionGroupManager,
        offsets: CommittedOffsets,
        stats: BrokerStats,
        config: Callable[[], BrokerConfig],
    ) -> None:
        """Answers for these groups.

        Args:
            groups: The broker's groups.
            offsets: Forgets those of a group that is deleted, if that is asked for.
            stats: Forgets the statistics of a group that is deleted, if `autoDeleteUnusedStats`.
            config: The configuration as it is now.
        """
        self._groups = groups
        self._offsets = offsets
        self._stats = stats
        self._config = config

    def processors(self) -> dict[int, Processor]:
        """Who answers, by request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.update_and_create_subscription_group,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.get_all_subscription_group,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete_subscription_group,
            GET_SUBSCRIPTIONGROUP_CONFIG: self.get_subscription_group,
        }

    def update_and_create_subscription_group(self, request: Request) -> Response:
        """200: makes a group, or changes one.

        Raises:
            ResponseError: A body that is no group, a name that no group may have.

        Source: `AdminBrokerProcessor.updateAndCreateSubscriptionGroup`.
        """
        group = group_of(request.body)
        _log.info("%s makes or changes %s", request.channel.remote_address, group)
        self._groups.update(group)
        return Response()

    def get_all_subscription_group(self, _request: Request) -> Response:
        """201: all groups.

        Source: `AdminBrokerProcessor.getAllSubscriptionGroup`.
        """
        return Response(body=encode(self._groups.wrapper()))

    def delete_subscription_group(self, request: Request) -> Response:
        """207: deletes a group, and its offsets if that is asked for; one that is not there is no error.

        Source: `AdminBrokerProcessor.deleteSubscriptionGroup`; 5.x calls the flag `cleanOffset`.
        """
        header = Header(request.ext_fields)
        name = header.text("groupName")
        _log.info("%s deletes the consumer group %r", request.channel.remote_address, name[:300])
        self._groups.delete(name)
        if header.flag("removeOffset") or header.flag("cleanOffset"):
            self._offsets.remove(name)
        if self._config().flag("autoDeleteUnusedStats"):
            self._stats.on_group_deleted(name)
        return Response()

    def get_subscription_group(self, request: Request) -> Response:
        """352: one group.

        Source: `AdminBrokerProcessor.getSubscriptionGroup` of 5.x.
        """
        name = Header(request.ext_fields).text("group")
        group = self._groups.get(name)
        if group is None:
            remark = f"No group in this broker. group: {name}"
            raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        return Response(body=encode(group.to_json()))


def group_of(body: bytes) -> SubscriptionGroupConfig:
    """The group that a body says; a member that is missing or null has its default.

    Args:
        body: JSON.

    Raises:
        ResponseError: 1; says which member is of a wrong type or out of range.

    Example:
        >>> group_of(b'{"groupName":"g","retryMaxTimes":"7"}').retry_max_times
        7
    """
    try:
        members = decode(body)
    except RemotingProtocolError as error:
        raise _wrong(f"the body is no consumer group: {error}") from None
    if not isinstance(members, Mapping):
        raise _wrong("the body is no consumer group: expected an object")
    group = SubscriptionGroupConfig.from_json({"groupName": ""} | _checked(members))
    if not 0 <= group.retry_queue_nums <= MAX_RETRY_QUEUES:
        raise _wrong(f"retryQueueNums: expected 0 to {MAX_RETRY_QUEUES}, got {group.retry_queue_nums}")
    return group


def _checked(members: Mapping[Any, Any]) -> dict[str, Any]:
    """The members that are known, of the types that they must have."""
    known = {java_name(field.name): field.type for field in fields(SubscriptionGroupConfig) if field.name != "other"}
    given = {name: members[name] for name in known if members.get(name) is not None}
    return {name: _typed(name, str(known[name]), value) for name, value in given.items()}


def _typed(name: str, wanted: str, value: Any) -> Any:
    if wanted == "str" and isinstance(value, str):
        return value
    if wanted == "bool" and (isinstance(value, bool) or str(value).lower() in {"true", "false"}):
        return str(value).lower() == "true"
    if wanted == "int" and not isinstance(value, bool):
        digits = str(value).removeprefix("-")
        limit = _LONG if name in {"brokerId", "whichBrokerWhenConsumeSlowly"} else _INT
        if digits.isascii() and digits.isdigit() and len(digits) < _LONGEST and -limit <= int(value) < limit:
            return int(value)
    kinds = {"str": "a text", "bool": "true or false", "int": "a whole number"}
    raise _wrong(f"{name}: expected {kinds[wanted]}, got {str(value)[:40]!r}")


def _wrong(remark: str) -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_ERROR, remark)
