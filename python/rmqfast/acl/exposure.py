"""Refuses to listen beyond loopback without access control, or restricts administration to this machine."""

from __future__ import annotations

from rmqfast.acl.rights import RIGHTS
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import Request, RequestCode, ResponseCode
from rmqfast.remoting.loopback import is_loopback
from rmqfast.remoting.processor import Check

__all__ = ["exposure_check"]

_log = logger_of(__name__)

#: Brokers ask this of the name server of another machine, and have no account without access control.
_OF_BROKERS = {RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER}
_REMARK = (
    "only administrators may ask for this, and only from the machine itself, as there is no access control: "
    "set aclEnable=true, or ask from there"
)


def exposure_check(host: str, *, is_checked: bool, is_allowed: bool) -> Check | None:
    """The check of requests for a server that listens at `host`.

    Args:
        host: `bindAddress`.
        is_checked: Whether accounts or a program check requests.
        is_allowed: Whether the server may be open (`insecureBind`).

    Returns:
        `None` at loopback or if requests are checked; otherwise a check that accepts administrators' requests only from
        this machine.

    Raises:
        ArgumentError: The server would be open and may not.

    Example:
        >>> exposure_check("127.0.0.1", is_checked=False, is_allowed=False)
        >>> exposure_check("0.0.0.0", is_checked=False, is_allowed=False)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        rmqfast.errors.ArgumentError: bindAddress=0.0.0.0: everybody who reaches the port could read, send and delete...
    """
    if is_checked or is_loopback(host):
        return None
    if not is_allowed:
        raise ArgumentError(
            f"bindAddress={host}: everybody who reaches the port could read, send and delete; expected loopback, or "
            "aclEnable=true (rmqfast server --secure DIR makes accounts and certificates), or --insecure-bind "
            "(insecureBind=true) where the network itself keeps strangers out, got none of them"
        )
    _log.warning(
        "bindAddress=%s without access control (insecureBind): everybody who reaches the port may send to and read all "
        "topics; what is for administrators is answered to this machine only",
        host,
    )
    return _check


def _check(request: Request) -> None:
    right = RIGHTS.get(request.code)  # 351 and 352, which clients of 5.x ask, have none
    if right is None or not right.strict.admin or request.code in _OF_BROKERS:
        return
    peer = request.channel.remote_address.rpartition(":")[0]
    if not is_loopback(peer):
        raise ResponseError(ResponseCode.NO_PERMISSION, _REMARK)
