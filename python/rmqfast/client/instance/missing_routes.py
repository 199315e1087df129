"""Topics that consumers want and that are not there yet: asked for often, so that the first messages are soon pulled.

Java's clients ask every 30 seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rmqfast.client.instance.members import Members
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import ClientError

#: How long a topic is asked for at each look, in seconds; then at each tenth.
SOON = 60.0
LATER = 10


class MissingRoutes:
    """Looks for routes of topics that consumers lack.

    Args:
        members: The consumers.
        update: Asks a name server for the route of a topic, and tells whether there is one now.
        clock: Seconds.
    """

    def __init__(
        self, members: Members, update: Callable[[str], bool], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._members, self._update, self._clock = members, update, clock
        self._since: dict[str, float] = {}
        self._looks = 0

    def look(self) -> bool:
        """Asks for each topic that is lacking; whether one of them was found.

        A name server that does not answer is left to those who look for all routes.
        """
        now, found = self._clock(), False
        self._looks += 1
        lacking = self._lacking()
        self._since = {topic: self._since.get(topic, now) for topic in lacking}
        for topic, since in self._since.items():
            if now - since < SOON or self._looks % LATER == 0:
                try:
                    found |= self._update(topic)
                except ClientError:
                    return found
        return found

    def _lacking(self) -> list[str]:
        """Topics without queues, but those of retries: brokers make them for a heartbeat."""
        return [
            topic
            for topic in self._members.subscribed_topics()
            if not topic.startswith(RETRY_PREFIX) and self._members.lacks_queues(topic)
        ]
