"""The producer that an instance has for its consumers: it takes messages back which brokers did not take.

Source: `MQClientInstance`, its `defaultMQProducer`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from rmqfast.errors import ClientError


class InnerProducer:
    """Makes it when it is first asked for.

    Attributes:
        factory: Makes the producer of an instance.
    """

    #: Set where producers are defined, which know instances, and not the other way round.
    factory: ClassVar[Callable[[Any], Any] | None] = None

    def __init__(self) -> None:
        self._lock, self._made = threading.Lock(), None

    def get(self, instance: Any) -> Any:
        """The producer of an instance.

        Raises:
            ClientError: There are no producers in this process.
        """
        with self._lock:
            if self._made is None:
                if self.factory is None:
                    raise ClientError("there is no inner producer", next_step="import rmqfast.client.producer first")
                self._made = type(self).factory(instance)  # type: ignore[misc]
            return self._made
