"""The data plane in Rust, as the control plane's `DataPlane`."""

from __future__ import annotations

from rmqfast._native import Appender, Call, Mailbox
from rmqfast._native import DataPlane as Native
from rmqfast.broker.plane.data_plane_options import DataPlaneOptions
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig


class NativeDataPlane:
    """Takes and gives out messages without Python; its tables are filled here. A `DataPlane`.

    Args:
        appender: Of the store.
        mailbox: Gets the requests that are not answered in Rust.
        options: How messages are taken and given out.

    Attributes:
        native: What a listener hands its requests to.
    """

    def __init__(self, appender: Appender, mailbox: Mailbox, options: DataPlaneOptions) -> None:
        self.native = Native.open(appender, mailbox, options)

    def handle_again(self, call: Call, target: tuple[str, int] | None = None) -> None:
        """Answers a request for which the control plane has made what was missing.

        Args:
            call: The request.
            target: Topic and queue that a message goes to in place of its own.
        """
        self.native.handle_again(call, target)

    def check_parked_pulls(self) -> None:
        """Answers pulls that have waited long enough, or whose queue has grown."""
        self.native.check_parked_pulls()

    @property
    def parked_pulls(self) -> int:
        """How many pulls wait for messages."""
        return self.native.parked_pulls

    def put_topic(self, config: TopicConfig) -> None:
        """Makes a topic known, or takes the place of the one of its name."""
        queues = (config.read_queue_nums, config.write_queue_nums)
        is_multi_tag = config.topic_filter_type == "MULTI_TAG"
        self.native.put_topic(config.topic_name, queues, config.perm, is_multi_tag, config.order)

    def remove_topic(self, name: str) -> None:
        """Forgets a topic; one that is not there is no error."""
        self.native.remove_topic(name)

    def put_group(self, config: SubscriptionGroupConfig) -> None:
        """Makes a consumer group's configuration known, or takes the place of the one of its name."""
        self.native.put_group(config.group_name, config.consume_enable, config.consume_broadcast_enable)

    def remove_group(self, name: str) -> None:
        """Forgets a consumer group's configuration; one that is not there is no error."""
        self.native.remove_group(name)

    def put_subscription(  # noqa: PLR0917 - the fields of a subscription, as a heartbeat has them
        self, group: str, topic: str, expression_type: str, sub_string: str, sub_version: int, codes: list[int]
    ) -> None:
        """Says what an online group wants of a topic; `codes` are the hashes of its tags, none for all messages."""
        self.native.put_subscription(group, topic, (expression_type, sub_string), sub_version, codes)

    def remove_subscription(self, group: str, topic: str) -> None:
        """Forgets what a group wants of a topic; one that is not there is no error."""
        self.native.remove_subscription(group, topic)

    def put_consumer_group(self, group: str, message_model: str) -> None:
        """Says that a group has a consumer online, and its model: CLUSTERING or BROADCASTING."""
        self.native.put_consumer_group(group, message_model == "BROADCASTING")

    def remove_consumer_group(self, group: str) -> None:
        """Says that a group has no consumer online; its subscriptions go with it."""
        self.native.remove_consumer_group(group)

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Notes the next queue offset that a group consumes, a smaller one, too."""
        self.native.commit_offset(group, topic, queue_id, offset)

    def offset(self, group: str, topic: str, queue_id: int) -> int:
        """The next queue offset that a group consumes; -1 where it has committed none."""
        offset = self.native.offset(group, topic, queue_id)
        return -1 if offset is None else offset

    def offsets(self, *, group: str | None = None, topic: str | None = None) -> dict[str, dict[int, int]]:
        """A copy of the offsets of a group, of a topic, or of all: by `topic@group`, then by queue."""
        return self.native.offsets(group, topic)

    def take_changed_offsets(self, limit: int) -> list[tuple[str, str | None]]:
        """At most so many of the offsets that changed since they were taken: `topic@group`, its queues as JSON.

        None stands in place of JSON for those that were removed.
        """
        return self.native.take_changed_offsets(limit)

    def remove_offsets(self, group: str, topic: str | None = None) -> None:
        """Forgets the offsets of a group, in all topics unless one is given."""
        self.native.remove_offsets(group, topic)

    def set_permission(self, perm: int) -> None:
        """Sets what the broker as a whole allows: 4 to read, 2 to write, added up."""
        self.native.set_permission(perm)

    def count_sent_back(self, key: str) -> None:
        """Counts a message that was sent back, by `topic@group`."""
        self.native.count_sent_back(key)

    def count(self, name: str, key: str, size: int) -> None:
        """Counts a message: STORE_PUT, TOPIC_PUT, BROKER_PUT, GROUP_GET or QUEUE_GET, its key, bytes of its record."""
        self.native.count(name, key, size)

    def note_put(self, millis: int) -> None:
        """Notes how long a message took that the control plane stored."""
        self.native.note_put(millis)

    def count_failed_put(self) -> None:
        """Counts a message that the control plane could not store."""
        self.native.count_failed_put()

    def set_options(self, options: DataPlaneOptions) -> None:
        """Changes the options that may change while the broker runs: those of `LIVE` keys of `broker.conf`."""
        self.native.set_options(options)

    @property
    def unflushed(self) -> int:
        """Bytes of the log that are not on the disk yet."""
        return self.native.unflushed

    @property
    def harm(self) -> str | None:
        """The file that another process has changed, so that nothing is stored any more; None where all is well."""
        return self.native.harm

    def take_harm_lines(self) -> list[str]:
        """What is to be told of such files, since it was taken last."""
        return self.native.take_harm_lines()

    @property
    def skipped_messages(self) -> int:
        """How many messages pulls could not give."""
        return self.native.skipped_messages

    def take_skipped_messages(self) -> list[tuple[str, int, int, int, int, str]]:
        """Topic, queue, queue offset, physical offset, size and reason of those that nobody was told of yet."""
        return self.native.take_skipped_messages()

    def set_disk_usage(self, text: str) -> None:
        """Sets what an answer says of how full the disks are."""
        self.native.set_disk_usage(text)

    def counters(self) -> list[tuple[str, str, int, int]]:
        """Name of a statistic, its key, times and amount since the start; they only grow."""
        counted = self._times()
        for name, key, calls, messages, size in self.native.counters():
            match name:
                case "TOPIC_PUT":
                    counted += [("TOPIC_PUT_NUMS", key, calls, messages), ("TOPIC_PUT_SIZE", key, calls, size)]
                case "STORE_PUT":
                    counted += [("STORE_PUT_NUMS", key, calls, messages), ("STORE_PUT_SIZE", key, calls, size)]
                case "GROUP_GET":
                    counted += [("GROUP_GET_NUMS", key, calls, messages), ("GROUP_GET_SIZE", key, calls, size)]
                case "QUEUE_PUT" | "QUEUE_GET":
                    counted += [(f"{name}_NUMS", key, calls, messages), (f"{name}_SIZE", key, calls, size)]
                case "BROKER_PUT" | "BROKER_GET" | "SNDBCK_PUT":
                    counted.append((f"{name}_NUMS", key, calls, messages))
                case "BROKER_PUT_FAILED":
                    counted.append(("STORE_PUT_FAILED", key, calls, calls))
                case "BROKER_GET_MISS":
                    counted.append(("STORE_GET_MISS", key, calls, calls))
        return counted

    def _times(self) -> list[tuple[str, str, int, int]]:
        put, get, ranges = self.native.times()
        longest = [("STORE_PUT_TIME_MAX", "", 1, put), ("STORE_GET_TIME_MAX", "", 1, get)]
        return longest + [("STORE_PUT_TIME", name, count, count) for name, count in ranges]

    def close(self) -> None:
        """Answers nothing more that waits; the store may be closed behind it."""
        self.native.close()
