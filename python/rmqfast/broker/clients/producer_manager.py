"""Keeps the online producer groups, for transaction checks and replies.

Source: RocketMQ's `ProducerManager`, `ProducerTableInfo`, `ProducerInfo`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Any

from rmqfast.broker.clients.client_channel import ClientChannel, check_room
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import Channel
from rmqfast.remoting.rate_limit import limited

#: Clients to try until one can be asked (`GET_AVAILABLE_CHANNEL_RETRY_COUNT`).
TRIES = 3

_log = limited(logger_of("rmqfast.broker"))


class ProducerManager:
    def __init__(self) -> None:
        self._lock = QuietLock()
        self._groups: dict[str, dict[Channel, ClientChannel]] = {}
        self._channel_by_client: dict[str, Channel] = {}
        self._names_by_channel: dict[Channel, set[str]] = {}
        self._turn = count(1)

    def check_room(self, channel: Channel, names: Iterable[str]) -> None:
        """Refuses a heartbeat with more groups than one connection may have."""
        with self._lock:
            check_room("producer", self._names_by_channel.get(channel, set()).union(names))

    def register(self, client: ClientChannel, group: str) -> None:
        with self._lock:
            clients = self._groups.setdefault(group, {})
            old = clients.get(client.channel)
            if old is not None:
                clients[client.channel] = replace(old, last_update=client.last_update)
                return
            clients[client.channel] = client
            # Replies are sent to their requester by client id.
            self._channel_by_client[client.client_id] = client.channel
            self._names_by_channel.setdefault(client.channel, set()).add(group)

    def unregister(self, group: str, channel: Channel) -> None:
        with self._lock:
            self._remove_client(group, channel)

    def disconnect(self, channel: Channel) -> None:
        """Removes a client from all its groups."""
        with self._lock:
            for group in list(self._names_by_channel.get(channel, ())):
                self._remove_client(group, channel)

    def scan(self, now: int) -> list[Channel]:
        """Removes clients that were silent for more than 120 seconds. Returns their connections."""
        channels: list[Channel] = []
        with self._lock:
            for group, clients in list(self._groups.items()):
                for client in [client for client in clients.values() if client.is_expired(now)]:
                    self._remove_client(group, client.channel)
                    channels.append(client.channel)
        return list(dict.fromkeys(channels))

    def clients(self, group: str) -> list[ClientChannel] | None:
        """Returns the clients of a group. None if the group is not online."""
        with self._lock:
            clients = self._groups.get(group)
            return None if clients is None else list(clients.values())

    def all_clients(self) -> list[ClientChannel]:
        """Returns the clients of all groups. One of several groups is there once for each."""
        with self._lock:
            return [client for clients in self._groups.values() for client in clients.values()]

    def available_channel(self, group: str) -> Channel | None:
        """Returns an open connection of a group, in round-robin order. None if there is none."""
        with self._lock:
            channels = list(self._groups.get(group, ()))
            if not channels:
                _log.warning("producer group %s has no client to ask", group)
                return None
            # Round robin, as in Java, so that a client that hangs is not asked every time.
            first = next(self._turn) % len(channels)
        turns = (channels[(first + step) % len(channels)] for step in range(TRIES))
        return next((channel for channel in turns if channel.is_open), None)

    def channel(self, client_id: str) -> Channel | None:
        with self._lock:
            return self._channel_by_client.get(client_id)

    def table(self) -> dict[str, list[dict[str, Any]]]:
        """Returns all groups with their clients, in the form in which administrators get them."""
        with self._lock:
            groups = {group: list(clients.values()) for group, clients in self._groups.items()}
        return {group: [_info(client) for client in clients] for group, clients in groups.items()}

    def _remove_client(self, group: str, channel: Channel) -> None:
        clients = self._groups.get(group, {})
        client = clients.pop(channel, None)
        if client is None:
            return
        if not clients:
            del self._groups[group]
        names = self._names_by_channel[channel]
        names.discard(group)
        if not names:
            del self._names_by_channel[channel]
        # One connection may have registered several client ids.
        is_known = any(self._groups[name][channel].client_id == client.client_id for name in names)
        if not is_known and self._channel_by_client.get(client.client_id) == channel:
            del self._channel_by_client[client.client_id]


def _info(client: ClientChannel) -> dict[str, Any]:
    return {
        "clientId": client.client_id,
        "language": client.language,
        "lastUpdateTimestamp": client.last_update,
        "remoteIP": f"/{client.channel.remote_address}",
        "version": client.version,
    }
