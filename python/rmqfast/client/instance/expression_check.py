"""Having brokers compile expressions before anybody waits for messages in vain.

Source: `MQClientInstance.checkClientInBroker`.
"""

from __future__ import annotations

from rmqfast.client.instance.client_requests import ClientRequests
from rmqfast.client.instance.members import Members
from rmqfast.client.instance.routes import RouteTable
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_NOT_ANSWERED = "no broker says whether it takes the expression, which is of the type {0}"


def check_expressions(
    api: ClientRequests, routes: RouteTable, members: Members, client_id: str, namespace: str = ""
) -> None:
    """Has one broker of each topic compile the expressions of all consumers; tags need no compiling.

    Args:
        api: What requests go out by.
        routes: Where topics are; one without a route is passed over.
        members: The consumers.
        client_id: Who asks.
        namespace: Of the topics.

    Raises:
        ClientError: A broker does not take one, or does not answer.
    """
    for group, consumer in members.consumers().items():
        for subscription in consumer.subscriptions():
            address = None if subscription.is_tag_type else routes.any_address(subscription.topic)
            if address is None:
                continue
            try:
                api.check_client_config(address, group, client_id, subscription, namespace=namespace)
            except RemotingError as error:
                raise _refused(subscription, error) from error


def _refused(subscription: SubscriptionData, error: RemotingError) -> ClientError:
    if isinstance(error, ResponseError):
        step = "correct the expression, or set enablePropertyFilter=true at the broker"
        return ClientError(str(error), response_code=error.code, next_step=step)
    return ClientError(_NOT_ANSWERED.format(subscription.expression_type), next_step=str(error))
