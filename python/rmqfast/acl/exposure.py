"""Refuses to listen beyond loopback without access control, or limits administration to this machine."""

from __future__ import annotations

from rmqfast.acl.rights import RIGHTS
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import Request, RequestCode, ResponseCode
from rmqfast.remoting.loopback import is_loopback
from rmqfast.remoting.processor import Check

_log = logger_of(__name__)

#: Brokers send these requests from other machines, and have no account without access control.
_OF_BROKERS = {RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER}
_REMARK = (
    "only administrators may ask for this, and only from the machine itself, as there is no access control: "
    "set aclEnable=true, or ask from there"
)


def exposure_check(host: str, *, is_checked: bool, is_allowed: bool) -> Check | None:
    """Returns the check of requests for a server that listens at `host` (`bindAddress`).

    The check is `None` at loopback or if accounts or a program check requests (`is_checked`). Otherwise it accepts
    administrators' requests only from this machine, and `ArgumentError` refuses the server unless `insecureBind` allows
    it (`is_allowed`).
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
    right = RIGHTS.get(request.code)  # codes without a row are those of 5.x clients, such as 351 and 352
    if right is None or not right.strict.admin or request.code in _OF_BROKERS:
        return
    peer = request.channel.remote_address.rpartition(":")[0]
    if not is_loopback(peer):
        raise ResponseError(ResponseCode.NO_PERMISSION, _REMARK)
