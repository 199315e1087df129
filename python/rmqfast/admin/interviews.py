"""What members say of themselves while one question is answered."""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.errors import RemotingError
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo

Ask = Callable[[str, str], ConsumerRunningInfo | RemotingError]


class Interviews:
    """Asks each member once: one that is silent costs the patience of a broker, each time.

    Args:
        ask: Asks a member by the address of a broker and its client id.

    Example:
        >>> asked = []
        >>> def ask(address, client_id):
        ...     asked.append(client_id)
        ...     return ConsumerRunningInfo()
        >>> interviews = Interviews(ask)
        >>> interviews.of("b1:10911", "c") is interviews.of("b2:10911", "c"), asked
        (True, ['c'])
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._told: dict[str, ConsumerRunningInfo] = {}
        self._silent: dict[tuple[str, str], RemotingError] = {}

    def of(self, address: str, client_id: str) -> ConsumerRunningInfo | RemotingError:
        """What a member says, or why it does not: not all of them are connected to all brokers.

        Args:
            address: Of a broker that knows it.
            client_id: The member.
        """
        known = self._told.get(client_id) or self._silent.get((address, client_id))
        if known is not None:
            return known
        answer = self._ask(address, client_id)
        if isinstance(answer, RemotingError):
            self._silent[address, client_id] = answer
        else:
            self._told[client_id] = answer
        return answer
