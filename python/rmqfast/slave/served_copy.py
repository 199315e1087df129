"""Serves a copy while it is open: a broker, which ends before the copy is closed."""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.broker import Broker, BrokerConfig, ConfigFile
from rmqfast.mirror.copy_directory import copy_options
from rmqfast.remoting import Request
from rmqfast.remoting.credentials import Signer
from rmqfast.store import AppendOptions
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, SubscriptionGroupTable, TopicConfigTable
from rmqfast.store.config.file import ConfigFile as ConfigTable
from rmqfast.store.replica import Replica

__all__ = ["ServedCopy"]


class ServedCopy:
    """The user of a slave's copy: see `CopyUser`.

    Attributes:
        config: How the broker is set up; from its first start on with the port that it has.
        sizes: Of the files of the copy.
    """

    def __init__(
        self,
        config: BrokerConfig,
        config_file: ConfigFile | None,
        check: Callable[[Request], None] | None,
        signer: Signer | None,
    ) -> None:
        self.config: BrokerConfig = config
        self.sizes: AppendOptions = copy_options(config)
        self._config_file, self._check, self._signer = config_file, check, signer
        self._broker: Broker | None = None

    def opened(self, replica: Replica) -> None:
        """Starts a broker that serves it."""
        broker = Broker(
            self.config,
            config_file=self._config_file,
            check=self._check,
            signer=self._signer,
            store=replica.store,
        )
        # a start that fails leaves nothing behind
        broker.start()
        self.config, self._broker = broker.config, broker

    def closes(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            # what was changed while it ran, and its port
            self.config = broker.state.config()
            broker.stop()

    def take(self, table: ConfigTable) -> None:
        """Gives the broker its master's tables in place of its own."""
        if self._broker is None:
            return
        state = self._broker.state
        match table:
            case TopicConfigTable():
                state.topics.take(table)
            case SubscriptionGroupTable():
                state.groups.take(table)
            case ConsumerOffsetTable():
                state.offsets.take(table)
            case DelayOffsetTable():
                state.schedule.take(table)
