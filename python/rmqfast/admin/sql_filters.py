"""Having a broker's own filter judge a message: its dialect counts, and whether it filters by SQL92 at all.

Source: `PullMessageProcessor`, `ClientManageProcessor.checkClientConfig`.
"""

from __future__ import annotations

from typing import Any

from rmqfast.admin.facts import GroupFacts
from rmqfast.admin.messages import TOOLS_GROUP, Messages
from rmqfast.admin.sql_answer import SqlAnswer, names_in
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


class SqlFilters(Messages):
    """Asks brokers what their filters make of messages."""

    def _sql_answers(self, message: Any, queue: MessageQueue, address: str, group: GroupFacts) -> dict[str, SqlAnswer]:
        """What the broker says of each expression that the group or one of its members has, by expression."""
        own = [member.subscription for member in group.members]
        wanted = [each for each in (group.subscription, *own) if each is not None and not each.is_tag_type]
        return {each.sub_string: self._sql_answer(message, queue, address, each) for each in wanted}

    def _sql_answer(self, message: Any, queue: MessageQueue, address: str, subscription: SubscriptionData) -> SqlAnswer:
        """Pulls the message by the expression: what comes is it, or one behind it, or nothing.

        The broker compiles the expression first: in a pull, one that does not compile lets everything pass.
        """
        api, values = self._api, {name: message.property(name) for name in names_in(subscription.sub_string)}
        try:
            api.check_client_config(address, TOOLS_GROUP, self._instance.client_id, subscription, timeout=self._timeout)
            found = self._pull(address, queue, message.queue_offset, subscription)
        except ResponseError as error:
            return SqlAnswer(values=values, problem=str(error))
        return SqlAnswer(is_passed=found.at(message.queue_offset) is not None, values=values)
