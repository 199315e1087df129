"""What a member of a group does right now, as it says itself.

Source: `DefaultMQAdminExtImpl.getConsumerRunningInfo`.
"""

from __future__ import annotations

from rmqfast.admin.client_connections import ClientConnections
from rmqfast.errors import ResponseError
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo


class RunningInfos(ClientConnections):
    """What an administrator asks the members of groups, through a broker."""

    def running_info(self, group: str, client_id: str, *, jstack: bool = False) -> ConsumerRunningInfo:
        """What a member of a group does right now.

        Args:
            group: The group.
            client_id: The member.
            jstack: Whether to have the stacks of its threads.

        Raises:
            ResponseError: 1, it is not online; 207, it does not answer.

        Source: `DefaultMQAdminExtImpl.getConsumerRunningInfo`.
        """
        brokers = self._brokers_of_group(group)
        for broker in brokers[:-1]:  # a client is connected to the brokers of its topics, not to all
            try:
                return self._running_info_at(broker.address, group, client_id, jstack=jstack)
            except ResponseError as error:
                if "not online" not in error.remark:
                    raise
        return self._running_info_at(brokers[-1].address, group, client_id, jstack=jstack)

    def _running_info_at(
        self, address: str, group: str, client_id: str, *, jstack: bool = False
    ) -> ConsumerRunningInfo:
        fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": jstack}
        return ConsumerRunningInfo.of_body(
            self._ask(address, RequestCode.GET_CONSUMER_RUNNING_INFO, fields, slow=True).body
        )
