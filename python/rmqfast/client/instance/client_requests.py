"""What a client says of itself to brokers, and asks of other clients.

Source: `MQClientAPIImpl.sendHearbeat`, `unregisterClient`, `checkClientInBroker`, `getConsumerIdListByGroup`,
`lockBatchMQ`, `unlockBatchMQ`.
"""

from __future__ import annotations

from collections.abc import Iterable

from rmqfast.client.instance.requests import Requests, as_fields, checked
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, fastjson
from rmqfast.remoting.protocol.heartbeat_data import HeartbeatData
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_MOST = 1_000_000


class ClientRequests(Requests):
    """Requests about clients; those that a broker remembers the connection of go over the shared one."""

    def send_heartbeat(self, address: str, heartbeat: HeartbeatData, *, timeout: float | None = None) -> int:
        """Tells a broker who this is and what it wants.

        Returns:
            The ordinal of the broker's release.
        """
        wait = self.timeout if timeout is None else timeout
        body = heartbeat.encode()
        answer = self.connections.control(address, RequestCode.HEART_BEAT, None, body, timeout=wait)
        return checked(answer, address).version

    def unregister_client(
        self,
        address: str,
        client_id: str,
        *,
        producer_group: str | None = None,
        consumer_group: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Tells a broker that a client has left a group."""
        fields = {"clientID": client_id, "producerGroup": producer_group, "consumerGroup": consumer_group}
        wait = self.timeout if timeout is None else timeout
        code = RequestCode.UNREGISTER_CLIENT
        checked(self.connections.control(address, code, as_fields(fields), timeout=wait), address)

    def check_client_config(
        self,
        address: str,
        group: str,
        client_id: str,
        subscription: SubscriptionData,
        *,
        namespace: str = "",
        timeout: float | None = None,
    ) -> None:
        """Has a broker compile an expression.

        Raises:
            ResponseError: It does not: 1 where it has no such filters, 23 where it does not parse.
        """
        members = {
            "clientId": client_id,
            "group": group,
            "namespace": namespace or None,
            "subscriptionData": subscription.to_json(),
        }
        self.ask(address, RequestCode.CHECK_CLIENT_CONFIG, None, fastjson.encode(members), timeout=timeout)

    def consumer_ids(self, address: str, group: str, *, timeout: float | None = None) -> tuple[str, ...]:
        """The clients of a group that a broker knows.

        Raises:
            ResponseError: 1, it knows none.
        """
        fields = {"consumerGroup": group}
        body = self.ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields, timeout=timeout).body
        return JsonObject.of_body(body).texts("consumerIdList", most=_MOST)

    def lock_batch(
        self,
        address: str,
        group: str,
        client_id: str,
        queues: Iterable[MessageQueue],
        *,
        timeout: float | None = None,
    ) -> set[MessageQueue]:
        """Locks queues for this client, or goes on to have them locked.

        Returns:
            Those that it has locked now.
        """
        body = _lock_body(group, client_id, queues)
        # what this client has unlocked before without waiting for an answer is not unlocked after this
        answer = self.ask_behind(address, RequestCode.LOCK_BATCH_MQ, None, body, timeout=timeout)
        return set(JsonObject.of_body(answer.body).queues("lockOKMQSet", most=_MOST))

    def unlock_batch(
        self,
        address: str,
        group: str,
        client_id: str,
        queues: Iterable[MessageQueue],
        *,
        oneway: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Gives queues up that this client has locked.

        Args:
            address: The broker.
            group: The group.
            client_id: This client.
            queues: What to give up.
            oneway: Whether not to wait for an answer.
            timeout: How long to wait for one, in seconds.
        """
        body = _lock_body(group, client_id, queues)
        if oneway:
            self.connections.send_oneway(address, RequestCode.UNLOCK_BATCH_MQ, None, body)
        else:
            # who locks them next goes on at the offsets that were stored before
            self.ask_behind(address, RequestCode.UNLOCK_BATCH_MQ, None, body, timeout=timeout)


def _lock_body(group: str, client_id: str, queues: Iterable[MessageQueue]) -> bytes:
    listed = [{"brokerName": q.broker_name, "queueId": q.queue_id, "topic": q.topic} for q in queues]
    return fastjson.encode({"clientId": client_id, "consumerGroup": group, "mqSet": listed})
