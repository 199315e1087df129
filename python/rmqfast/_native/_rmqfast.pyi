"""The Rust extension. Only other modules of `rmqfast` use it; see the public modules for their documentation."""

import builtins
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Never, TypeAlias, final

from rmqfast.broker.options_of_config import DataPlaneOptions
from rmqfast.client.instance import ClientConfig, FoundBroker
from rmqfast.client.producer.hooks import HookedSends, Hooks, SendHook
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.selectors import QueueSelector
from rmqfast.client.producer.send_result import SendCallback, SendResult
from rmqfast.errors import ClientError, RmqError
from rmqfast.message import Message, MessageExt, MessageQueue
from rmqfast.remoting.connections import Sign
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData
from rmqfast.remoting.request import Response
from rmqfast.remoting.server import ServerOptions
from rmqfast.remoting.tls import TlsOptions
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig
from rmqfast.store.request import GetLimits, ScanRequest
from rmqfast.store.retention import RetentionOptions

__all__ = [
    "COLUMNS",
    "FORBIDDEN_TOPICS",
    "MAX_NAMED_TOPIC",
    "MAX_TOPIC",
    "SYSTEM_TOPICS",
    "Appender",
    "Batch",
    "Call",
    "Channel",
    "Connections",
    "DataPlane",
    "Fetched",
    "FlowControl",
    "Follower",
    "Mailbox",
    "MessageEncoder",
    "MessageSender",
    "MessageView",
    "NameServers",
    "Outgoing",
    "PublishQueues",
    "Puller",
    "PullerEvent",
    "RangeReader",
    "RemotingClient",
    "RemotingServer",
    "RouteTable",
    "Scan",
    "Selection",
    "Send",
    "SparkOptions",
    "SparkStream",
    "Store",
    "Tail",
    "TopicRead",
    "TopicSink",
    "TopicWriter",
    "UniqueIds",
    "Written",
    "__version__",
    "begin_mark",
    "check_not_expired",
    "config_text",
    "cut_copy",
    "ddl_of",
    "decode_pull",
    "fetched_to_arrow",
    "find_broker_stores",
    "implied_filters",
    "infer_json",
    "is_directory",
    "is_file",
    "is_legal_name",
    "is_timed",
    "java_double",
    "list_directory",
    "load_config",
    "load_mark",
    "local_path",
    "log_source",
    "make_certificates",
    "messages_to_arrow",
    "milliseconds",
    "missing_end",
    "name_problem",
    "names_a_cluster",
    "namespace_of_endpoint",
    "newest_copy",
    "panic",
    "parse_message_id",
    "parse_name_servers",
    "parse_tags",
    "path_exists",
    "pieces_option",
    "plain_remark",
    "plan_clean",
    "pull_fields",
    "read_fastjson",
    "read_piece",
    "read_pull",
    "read_store_piece",
    "repair",
    "save_config",
    "sign_fields",
    "signature_of",
    "spark_row",
    "sql_properties",
    "step_after",
    "store_options",
    "topics_like",
    "unwrap_namespace",
    "used_percent",
    "with_schema_text",
    "without_namespace",
    "wrap_namespace",
    "write_fastjson",
]

__version__: str
COLUMNS: list[str]
#: Topics that clients must not send to, and topics of the system, which have no namespace.
FORBIDDEN_TOPICS: list[str]
SYSTEM_TOPICS: list[str]
#: Maximum of characters in a topic; in a topic that a client names to a broker, which may be a group's retry topic.
MAX_TOPIC: int
MAX_NAMED_TOPIC: int

_Piece: TypeAlias = tuple[str, int, int, bool]
# offset, length, reason, file, name of the broker
_Damage: TypeAlias = tuple[int, int, str, str, str | None]
_BadBody: TypeAlias = tuple[str, int, int, int, str, str | None]
_Row: TypeAlias = dict[str, Any]
_Rows: TypeAlias = tuple[list[_Row], list[_Damage]]
_Options: TypeAlias = tuple[str | None, int]
_Cleaned: TypeAlias = tuple[int, int, int, int, int, int | None, bool, int]

@final
class Store:
    """A store directory, opened for reading."""

    @staticmethod
    def open(path: str, *, commit_log_dirs: list[str], io: str, pinned: bool) -> Store:
        """Opens a store. With `pinned`, messages that are added later are not read."""
    def refreshed(self) -> Store:
        """Returns the store in its current state, pinned. Closing either store closes both."""
    def close(self) -> None: ...
    def plan(
        self, request: ScanRequest, *, way: str | None, cut_bytes: int, readers: int
    ) -> tuple[list[_Piece], int, str]: ...
    def partitions(
        self,
        request: ScanRequest,
        *,
        least: int | None,
        piece_bytes: int | None,
        readers: int,
        worker_cores: int | None,
    ) -> list[_Piece]: ...
    def scan(
        self, request: ScanRequest, *, way: str | None, threads: int, limit: int | None, fails_on_damage: bool
    ) -> Scan: ...
    def scan_pieces(
        self,
        request: ScanRequest,
        pieces: Sequence[_Piece],
        *,
        threads: int,
        limit: int | None,
        fails_on_damage: bool,
    ) -> Scan: ...
    def explain(
        self, request: ScanRequest, pieces: Sequence[_Piece] | None, *, way: str | None, threads: int
    ) -> dict[str, Any]:
        """Tells what a scan reads, of planned pieces or planned now. Reads no record."""
    def count(self, request: ScanRequest) -> int | None:
        """Counts messages by the consume queues. None if the log must be read."""
    def tail(
        self,
        request: ScanRequest,
        *,
        start: tuple[str, int],
        last: int,
        stop: int | None,
        poll_interval: float,
        fails_on_damage: bool,
    ) -> Tail: ...
    def has_topic(self, topic: str) -> bool: ...
    def topics(self) -> dict[str, dict[int, tuple[int, int]]]: ...
    def get(
        self,
        queue: tuple[str, int],
        offset: int,
        *,
        max_messages: int,
        tags: str,
        options: _Options,
        limits: GetLimits | None,
    ) -> tuple[str, tuple[int, int, int], bool, list[_Row], list[_Damage]]: ...
    def check_in_disk(self, queue: tuple[str, int], offset: int, *, limits: GetLimits) -> bool: ...
    def earliest_time(self, topic: str | None, queue_id: int | None) -> int | None: ...
    def offset_for_time(self, topic: str, queue_id: int, when: int, *, rule: str) -> int: ...
    def message_at(self, physical_offset: int, *, options: _Options) -> _Rows: ...
    def query(
        self, topic: str, key: str, *, max_messages: int, between: tuple[int, int], options: _Options
    ) -> _Rows: ...
    def message_by_id(self, id: str, *, topic: str | None, options: _Options) -> _Rows: ...  # noqa: A002
    def verify(self, *, crc: bool, progress: Callable[[int, int], object] | None) -> dict[str, Any]: ...
    def export(
        self,
        request: ScanRequest,
        out: str,
        *,
        sizes: tuple[AppendOptions | None, int],
        progress: Callable[[int, int], object] | None,
    ) -> dict[str, Any]: ...
    def info(self) -> dict[str, Any]: ...

@final
class Batch:
    """A batch of rows that libraries read by Arrow's PyCapsule interface, as in `pyarrow.record_batch(batch)`."""

    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Scan:
    """A running scan. Only one reader can take its batches."""

    @staticmethod
    def chain(scans: list[Scan], limit: int | None) -> Scan:
        """Returns one scan, which reads scans of stores one after the other. These are empty then."""
    def stream(self, on_end: Callable[[], object]) -> object:
        """Returns an Arrow C stream.

        If damage or bad bodies were found, `on_end` is called once when it ends or is released.
        """
    def __arrow_c_schema__(self) -> object: ...
    def next_batch(self) -> Batch | None: ...
    @property
    def fails_on_damage(self) -> bool: ...
    @property
    def damage(self) -> tuple[list[_Damage], int]: ...
    @property
    def warnings(self) -> tuple[tuple[list[str], int], tuple[list[str], int]]:
        """The losses and the troubles of a scan of topics: the first of each, and the number of further ones."""
    @property
    def fails_on_bad_bodies(self) -> bool: ...
    @property
    def bad_bodies(self) -> tuple[list[_BadBody], int]: ...

@final
class Tail:
    """Follows the new messages of a store."""

    def next_batch(self, *, wait: bool) -> Batch | None: ...
    @property
    def position(self) -> int: ...
    @property
    def damage(self) -> tuple[list[_Damage], int]: ...
    @property
    def retained(self) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...

@final
class SparkOptions:
    """Parsed options of a read ("store batch", "store stream", "topic batch", "topic stream") or of the "sink"."""

    def __new__(cls, kind: str, options: dict[str, str]) -> SparkOptions: ...
    @staticmethod
    def names(kind: str) -> list[str]:
        """Returns the names and aliases of options that errors list."""
    @staticmethod
    def arguments(kind: str) -> list[tuple[str, str]]:
        """Returns the name of each option with its keyword argument in Python."""
    @property
    def values(self) -> dict[str, Any]:
        """Values by keyword argument. None for an option that has no value."""
    @property
    def begin(self) -> str: ...
    def row(self) -> list[tuple[str, str]]:
        """Returns names and Spark types of the columns. The type of decoded bodies is JSON."""
    def columns_of_schema(self, fields: list[tuple[str, str, bool]]) -> list[str]:
        """Returns the columns of a user's schema, with paths of the fields of `value`."""
    def are_offsets_whole(self) -> bool: ...
    def offset_bounds(
        self, queues: Mapping[int, tuple[int, int]]
    ) -> tuple[builtins.dict[int, int], builtins.dict[int, int]]: ...

@final
class Selection:
    """The messages that a request and filters select. `only_topic` is the topic that a filter has selected already.

    `broker_names` are those of several stores; None is the one of the request.
    """

    def __new__(
        cls, request: ScanRequest, *, only_topic: str | None = None, broker_names: list[str] | None = None
    ) -> Selection: ...
    def take(self, filters: list[tuple[str, str, list[object]]]) -> list[bool]:
        """Applies filters (kind, column, values; a time is `(microseconds,)`) and returns which are applied."""
    @property
    def has_offsets_by_queue(self) -> bool: ...
    @property
    def only_topic(self) -> str | None: ...
    @property
    def broker_names(self) -> list[str] | None:
        """The brokers whose stores may have matching messages; None if the store has no name."""
    @property
    def tags(self) -> list[str] | None: ...
    @property
    def queue_ids(self) -> list[int] | None: ...
    @property
    def offsets(self) -> tuple[int | None, int | None]: ...
    @property
    def times(self) -> tuple[int | None, int | None]: ...
    @property
    def is_empty(self) -> bool: ...

def implied_filters(predicate: object) -> list[tuple[str, str, list[Any]]]:
    """Returns the filters (kind, column, values) that a predicate surely implies.

    The predicate is bytes of Substrait, or a tree of filters, `("all", parts)` and `("any", parts)`. A None in the tree
    implies nothing.

    Raises:
        ArgumentError: The bytes are no expression of Substrait.

    Example:
        >>> implied_filters(("any", [("=", "tags", ["a"]), ("=", "tags", ["b"])]))
        [('in', 'tags', ['a', 'b'])]
    """

def milliseconds(text: str, name: str = "time") -> int: ...
def name_problem(
    rule: Literal[
        "group",
        "producer group",
        "consumer group",
        "topic",
        "sent topic",
        "batch topic",
        "new topic",
        "named topic",
    ],
    name: str,
) -> str | None:
    """Returns the reason why a name is invalid, in RocketMQ's words. None if it is valid.

    Args:
        rule: The use of the name: a group, a topic of a client, a topic to send to (alone or in a batch), a topic that
            a broker creates, or a topic that a client names to a broker.
        name: The name to check.

    Source: `Validators`, `TopicValidator`.
    """

def is_legal_name(name: str) -> bool:
    """Whether a name is not empty and contains only letters, digits, `%`, `|`, `-` and `_`.

    Source: `TopicValidator.isTopicOrGroupIllegal`.
    """

def wrap_namespace(namespace: str, resource: str) -> str: ...
def unwrap_namespace(namespace: str, resource: str) -> str: ...
def without_namespace(resource: str) -> str: ...
def panic(text: str) -> Never:
    """Panics on purpose. Tests check with it that panics become Python exceptions on each platform."""

def plain_remark(remark: str) -> str: ...
def step_after(remark: str) -> str | None: ...
def check_not_expired(name: str, bounds: Mapping[int, int], queues: Mapping[int, tuple[int, int]]) -> None: ...

@final
class TopicRead:
    """A read of a cluster's topics, from options and filters. It can be pickled for the tasks.

    Args:
        kind: "topic batch" or "topic stream".
        options: Options of the data source, as Spark passes them.
        columns: The row's columns, in order; if the option `columns` is given, the same columns.
        config: Settings that no option has, such as `translate_address` and timeouts.

    Raises:
        ArgumentError: An unknown option or an invalid value.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        ClientError: An invalid name of a topic or a group.

    Source: `RocketMqRDD` of rocketmq-spark, a partition of which is a queue.
    """

    def __new__(
        cls, kind: str, options: dict[str, str], columns: Sequence[str], *, config: ClientConfig | None = None
    ) -> TopicRead: ...
    @staticmethod
    def narrowed(
        kind: str,
        options: dict[str, str],
        columns: Sequence[str],
        config: ClientConfig | None,
        filters: list[tuple[str, str, list[object]]],
    ) -> TopicRead:
        """Rebuilds a pickled read with its filters."""

    def take(self, filters: list[tuple[str, str, list[object]]]) -> tuple[TopicRead, list[bool]]:
        """Narrows the read by filters. Returns the new read, and for each filter whether the read applies it.

        Args:
            filters: Kind, column and values of each; a time is `(microseconds,)`.
        """

    def check(self) -> None:
        """Checks as early as possible that the read can be done. Ignores offsets, which a checkpoint may replace.

        Raises:
            UnknownTopicError: The name servers do not know a topic.
            ArgumentError: No broker has a queue.
            ClientError: No name server answers, or a broker refuses. A broker that does not answer is no error.
        """

    def plan(self, *, logger: str = ...) -> list[bytes]:
        """Fixes the offsets and divides them into pieces. Returns an empty list without messages.

        Args:
            logger: Name of the logger of warnings.

        Raises:
            ArgumentError: A broker has no copy, if copies are read.
            UnknownTopicError: The name servers do not know a topic.
            DataLossError: A queue does not have an offset, unless `failOnDataLoss` is false.
            ClientError: A broker does not answer, or refuses.

        Source: `RocketMQSource.getOffsetRanges`.
        """

    def scan(
        self,
        pieces: Sequence[bytes],
        request: ScanRequest,
        *,
        threads: int,
        limit: int | None,
    ) -> Scan:
        """Starts a scan of the planned pieces. Asks no broker before its first batch.

        Columns, decoding, `keys_prefix` and batch sizes are those of the request; filters are those of the read.

        Raises:
            ArgumentError: A piece is of another release.
        """

    def explain(
        self, pieces: Sequence[bytes], *, threads: int
    ) -> list[tuple[str, str | None, list[tuple[str, str, int, int, int]], tuple[int, int] | None]]:
        """Returns the pieces that a scan reads: way, address, ranges of queues, range of the log. Asks no broker.

        Raises:
            ArgumentError: A piece is of another release.
        """

    def count(self, pieces: Sequence[bytes]) -> int | None:
        """Counts the messages of planned pieces by their offsets alone. None if the messages must be read.

        Raises:
            RmqError: See `plan`.
        """

    def bounds(self) -> list[tuple[str, str, int, int, int]]:
        """Returns topic, broker name, queue id, first offset and present end of each queue.

        Raises:
            RmqError: See `plan`.
        """

    def plan_with_ways(self, *, logger: str = ...) -> tuple[list[bytes], str]:
        """Returns the pieces like `plan`, and for each broker whether its log is read, as the option `ways`.

        Raises:
            RmqError: See `plan`.
        """

def pieces_option(pieces: Sequence[bytes]) -> str:
    """Formats planned pieces as the value of the option `pieces`.

    Raises:
        ArgumentError: The bytes are of another release.
    """

def names_a_cluster(options: dict[str, str]) -> bool:
    """Whether the options of a read or a table select a live cluster instead of a store directory."""

def read_piece(piece: bytes) -> tuple[str | None, list[tuple[str, str, int, int, int]]]:
    """Returns a piece's broker address and its ranges: topic, broker, queue id, first offset, and end.

    Raises:
        ArgumentError: The bytes are of another release.
    """

def read_store_piece(piece: bytes) -> tuple[tuple[str, int, int, bool], tuple[str, str] | None]:
    """Returns the way, start, end and CRC check of a piece of a store; of several stores also the broker and the path.

    Raises:
        ArgumentError: The bytes are of another release.
    """

def store_options(kind: str, options: dict[str, str]) -> list[dict[str, str]]:
    """Returns the options of each store that the option `storePath` names, which may be several.

    Raises:
        ArgumentError: An option that only one store may have, or offsets of a broker that has no store.
        UnsupportedStoreError: Nothing matches a pattern.
    """

def topics_like(pattern: str, names: Sequence[str]) -> list[str]:
    """Returns the names of topics that a pattern selects, as the option `subscribePattern` does.

    Raises:
        ArgumentError: The pattern is no regular expression.
    """

def spark_row(request: object) -> list[tuple[str, str]]: ...
def with_schema_text(options: dict[str, str]) -> dict[str, str]: ...
def ddl_of(schema: object) -> str: ...
def namespace_of_endpoint(text: str) -> str | None: ...
def parse_message_id(message_id: str) -> tuple[str, int, int] | None:
    """Parses a broker's message id into IP address, port and physical offset. None for any other string.

    Example:
        >>> parse_message_id("7F00000100002A9F0000000000000400")
        ('127.0.0.1', 10911, 1024)
    """

def parse_name_servers(text: str) -> list[str]: ...
def read_fastjson(body: bytes) -> Any:
    """Parses RocketMQ's JSON, which the library fastjson writes.

    Raises:
        RemotingProtocolError: The body is not JSON; the text names the position.
    """

def write_fastjson(value: object, *, standard: bool = False) -> bytes:
    """Returns a value as RocketMQ's JSON.

    Raises:
        ArgumentError: A type without JSON form, or nesting over 64.
    """

def java_double(number: float) -> str:
    """Formats a number as Java prints it. NaN and infinity become `null`, as in fastjson."""

def sign_fields(
    access_key: str, secret_key: str, security_token: str | None, ext_fields: Mapping[str, str], body: bytes
) -> dict[str, str]: ...
def signature_of(ext_fields: Mapping[str, str], body: bytes, secret_key: bytes, without: str) -> bytes: ...
def infer_json(bodies: Any, max_bytes: int) -> tuple[str, int, bool]:
    """Infers DDL from bodies of JSON, which are a list of bytes, or Arrow rows with a column `body`.

    Returns the DDL, the number of bodies that are no JSON objects, and whether all bodies fit into `max_bytes`.

    Raises:
        ArgumentError: No body is a JSON object, or a field has values that no type holds together.
    """

def parse_tags(expression: str) -> tuple[list[str], list[int]]: ...
def sql_properties(expression: str) -> list[str]: ...
def load_config(path: str, name: str) -> tuple[str | None, list[str], str | None]: ...
def make_certificates(
    names: list[str], begin: tuple[int, int, int], end: tuple[int, int, int]
) -> tuple[str, str, str, str]: ...
def config_text(name: str, json: str) -> bytes: ...
def save_config(path: str, name: str, text: bytes) -> None: ...
def missing_end(path: str) -> tuple[int, int, Path, int, str] | None: ...
def repair(
    path: str, options: AppendOptions, *, cut_at: int | None, progress: Callable[[int, int], object] | None
) -> tuple[int, int, int, int, int, int, int]: ...
def plan_clean(
    path: str, retention: RetentionOptions, *, now: int | None
) -> tuple[list[tuple[str, str, int]], int]: ...
def used_percent(directory: Path) -> int | None:
    """Returns how much of a directory's disk is used, in percent, rounded up. None if the system does not tell.

    Source: `UtilAll.getDiskPartitionSpaceUsedPercent`.
    """

@final
class Appender:
    """A store to which this process appends."""

    @staticmethod
    def open(
        path: str,
        options: AppendOptions,
        *,
        retention: RetentionOptions | None,
        progress: Callable[[int, int], object] | None,
        replica_from: int | None = None,
    ) -> Appender:
        """Opens a store. Creates the store if it does not exist.

        With `replica_from` the store is a copy of a master's log, which only a `Follower` appends to. A new copy begins
        at that offset of the log.
        """

    def recovered(self) -> tuple[int, int, int, int, int, int, int] | None: ...
    def append(
        self,
        message: Message,
        store_timestamp: int | None,
        born_host: str | None,
        sys_flag: int,
        reconsume_times: int,
        prepared_transaction_offset: int,
        is_due: bool,
        waits: bool,
    ) -> tuple[int, int, int, str]: ...
    def append_batch(self, messages: list[Message], store_timestamp: int | None) -> list[tuple[int, int, int, str]]: ...
    def append_messages(self, messages: list[Message], *, store_timestamp: int | None) -> int: ...
    def append_arrow(self, batches: object, *, store_timestamp: int | None) -> int: ...
    def flush(self) -> None: ...
    def clean(self, *, now: int | None, manual: bool) -> _Cleaned: ...
    def last_cleaned(self) -> _Cleaned | None: ...
    def cleaned_runs(self) -> int: ...
    def clean_expired_queues(self) -> list[tuple[str, int]]: ...
    def clean_unused_topics(self, configured: set[str]) -> list[tuple[str, int]]: ...
    def remove_ended_queues(self, ended: list[tuple[tuple[str, int], int]]) -> list[tuple[str, int]]:
        """Removes queues of a copy that its master no longer has. Each comes with the offset of its next message."""

    def close(self) -> None: ...
    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]: ...
    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None: ...
    def record(self, physical_offset: int) -> bytes | None: ...
    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int: ...
    def progress(
        self, topic: str, offsets: Sequence[tuple[int, int]], unread: bool
    ) -> list[tuple[int, int, int, int]]: ...
    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int: ...
    def query(self, topic: str, key: str, max_num: int, between: tuple[int, int]) -> tuple[list[bytes], int, int]: ...
    def log_bounds(self) -> tuple[int, int]: ...
    def log_file_size(self) -> int: ...
    def compare_from(self, end: int, most: int) -> int:
        """Returns the start of a record about `most` bytes before `end`, from which a copy is compared."""

    def earliest_store_time(self, topic: str | None, queue_id: int | None) -> int: ...

_End: TypeAlias = tuple[
    Literal["stopped", "connect", "closed", "silent", "stalled", "frame", "diverged", "broken", "full", "store"],
    str,
    int | None,
]

@final
class Follower:
    """Follows a master's log over its HA port into a copy. Ends with the connection, or if the copy fails.

    Source: `HAClient`.
    """

    @staticmethod
    def start(
        copy: Appender,
        path: str,
        address: str,
        start: int,
        *,
        max_record: int,
        lists: bool = True,
        cold_rate: int = 0,
        cold_before: int = 0,
        counts: bool = False,
        tls: TlsOptions | None = None,
        topics: Sequence[str] | None = None,
    ) -> Follower:
        """Starts to follow.

        Args:
            copy: The copy, opened with `replica_from`.
            path: The copy's directory.
            address: The master's HA port, `host:port`.
            start: The copy's end, or an earlier offset, from which log and copy are compared.
            max_record: Maximum bytes of a record.
            lists: Whether records are added to the consume queues and the index.
            cold_rate: Maximum bytes per second for old parts of the log; 0 for no limit.
            cold_before: Offset before which the log counts as old.
            counts: Whether to report the copy's end like a slave, which sends may wait for.
            tls: TLS settings, if the HA port has TLS.
            topics: Topics to keep, in a copy with a mark; all topics if empty or None.
        """

    def progress(self) -> tuple[int, int, int, int, bool]:
        """Returns the progress.

        Returns:
            Offsets up to which the log is copied, indexed and compared; store time of the last record; whether all is
            compared.
        """

    def wait(self, timeout: float) -> _End | None:
        """Waits up to `timeout` seconds for the end. Returns its kind, text and position in the log. None before it."""

    def stop(self) -> None:
        """Stops after all complete records that were received are written."""

def begin_mark(path: str, position: int, copy_end: int) -> None:
    """Records that a copy of some topics begins at `position` of its master's log; its own log ends at `copy_end`."""

def load_mark(path: str) -> tuple[int, int] | None:
    """Returns how far a copy of some topics has its master's log, and where to compare. None for any other copy.

    Raises:
        CorruptError: The mark cannot be read.
    """

def cut_copy(path: str, at: int, options: AppendOptions, *, progress: Callable[[int, int], object] | None) -> int:
    """Cuts a copy's log after its last record that ends at or before `at`. The copy must not be open.

    Returns:
        The new end of the log.
    """

def log_source(
    config: dict[str, str], address: str
) -> tuple[list[str], int, Literal["nobody", "reports", "connections"], bool]:
    """Returns a broker's HA addresses, log file size, what its sends wait for, and whether its HA port uses TLS.

    Raises:
        ArgumentError: The log cannot be read.
    """

def newest_copy(directory: Path) -> Path:
    """Returns the newest copy of the broker that `directory` is named after: `DIR`, or a later one such as `DIR.2`.

    A note in each copy names its broker, since another broker may be called `DIR.2`.

    Raises:
        StoreIOError: A directory or a note cannot be read.
        CorruptError: A note is invalid.
    """

def local_path(name: str, given: str | os.PathLike[str]) -> Path:
    """Checks and converts a user's path; `name` is the argument's name for errors. See `rmqfast.paths`.

    Raises:
        ArgumentError: An empty path, or a URL.
    """

def path_exists(path: str | os.PathLike[str]) -> bool:
    """Whether a path exists. A broken symbolic link counts as existing.

    Raises:
        StoreIOError: The path cannot be accessed.
    """

def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a file.

    Raises:
        StoreIOError: The path cannot be accessed.
        CorruptError: The path is a dangling link.
    """

def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a directory.

    Raises:
        StoreIOError: The path cannot be accessed.
        CorruptError: The path is a dangling link.
    """

def find_broker_stores(path: str | os.PathLike[str]) -> dict[str, Path] | None:
    """Returns the stores in a directory, or those that match a pattern, by broker; of several copies the newest.

    None for a path that is one store, and for one without stores.

    Raises:
        UnsupportedStoreError: Nothing matches the pattern.
        ArgumentError: Two stores have one name.
        StoreIOError: A directory cannot be read.
    """

def list_directory(path: str | os.PathLike[str]) -> list[Path]:
    """Returns the paths in a directory, unsorted. Empty if the directory does not exist.

    Raises:
        StoreIOError: The directory cannot be accessed.
        CorruptError: The path is a dangling link.
    """

_Answered: TypeAlias = tuple[int, str | None, dict[str, str], bytes, int]

@final
class Channel:
    """A connection over which both sides can send requests. Two objects for the same connection are equal."""

    @property
    def id(self) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def remote_address(self) -> str: ...
    @property
    def local_address(self) -> str: ...
    @property
    def is_open(self) -> bool: ...
    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes, timeout: float) -> _Answered: ...
    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes) -> None: ...
    def close(self) -> None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Call:
    """A request that waits for its answer."""

    def fields(self) -> tuple[int, dict[str, str], bytes, Channel, str | None, int, str | None, bool]: ...
    @property
    def age(self) -> float: ...
    def reply(
        self, code: int, remark: str | None, ext_fields: Mapping[str, str], body: bytes, version: int = ...
    ) -> bool: ...

@final
class Mailbox:
    """Requests that wait for Python threads, and reports of closed connections."""

    def __new__(cls, capacity: int, *, max_body: int = ..., unlimited: list[int] = ...) -> Mailbox: ...
    def take(self, timeout: float, *, takes_large: bool = True) -> Call | tuple[Channel, str | None] | str | None: ...
    def dropped(self) -> None:
        """Counts a oneway request that was refused. A later warning reports the number."""
    @property
    def is_closed(self) -> bool: ...
    def __len__(self) -> int: ...
    def close(self) -> None: ...

@final
class RemotingServer:
    """A socket that listens for connections. Requests go to a mailbox, or to a data plane and then to the mailbox."""

    @staticmethod
    def bind(address: str, handler: Mailbox | DataPlane, options: ServerOptions) -> RemotingServer: ...
    @property
    def address(self) -> str: ...
    @property
    def connections(self) -> int: ...
    def close(self) -> None: ...

@final
class RemotingClient:
    """A connection that this process opened. Only one thread can use it at a time; other threads wait."""

    @staticmethod
    def connect(address: str, timeout: float, tls: TlsOptions | None) -> RemotingClient: ...
    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes, timeout: float) -> _Answered: ...
    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes, timeout: float) -> None: ...

@final
class Connections:
    """All connections of a client, by address."""

    def __new__(
        cls, mailbox: Mailbox, tls: TlsOptions | None, connect_timeout: float, max_in_flight: int, takers: int
    ) -> Connections: ...
    def request(
        self, address: str, code: int, ext_fields: Mapping[str, str], body: bytes, timeout: float
    ) -> _Answered: ...
    def control(
        self, address: str, code: int, ext_fields: Mapping[str, str], body: bytes, timeout: float
    ) -> _Answered: ...
    def submit(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str],
        body: bytes,
        timeout: float,
        on_done: Callable[[Any], object],
        waits: bool,
    ) -> None: ...
    def send_oneway(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str],
        body: bytes,
        waits: bool,
    ) -> None: ...
    def expect_takers(self) -> None:
        """Called when threads are started that call `take`."""
    def take(self, max_count: int, timeout: float) -> Iterator[tuple[Callable[[Any], object], Any]] | None:
        """Returns callables with their arguments: an answer as a tuple, an error, or an object made from the answer.

        The iterator is empty after `timeout` seconds. Returns None when all connections are closed.
        """
    @property
    def in_flight(self) -> int: ...
    def drain(self) -> None:
        """Refuses new requests, and waits until queued oneway requests are written, as long as servers read."""
    def close(self) -> list[tuple[str, int]]:
        """Closes all connections. Returns for each address how many oneway requests were not written."""

@final
class DataPlane:
    """The data plane of a broker. It answers requests that occur per message, without the GIL."""

    @staticmethod
    def open(appender: Appender, mailbox: Mailbox, options: DataPlaneOptions) -> DataPlane: ...
    def serve_log(
        self,
        address: str,
        *,
        slaves: list[str] | None,
        max_frame: int,
        heartbeat: float,
        housekeeping: float,
        tls: TlsOptions | None,
    ) -> None:
        """Serves the log to slaves at `ip:port` until `close`. If `slaves` is None, only this machine may connect.

        Args:
            address: Address to listen at.
            slaves: Slaves' IP addresses, without ports.
            max_frame: Maximum bytes of the log in a frame.
            heartbeat: Seconds without a frame after which an empty frame is sent.
            housekeeping: Seconds without a report or without progress in writing after which a connection is closed.
            tls: TLS settings; None for plain connections.

        Raises:
            RemotingError: The address cannot be listened at.
            ArgumentError: A slave's address is invalid.

        Source: `HAService`.
        """
    def handle_again(self, call: Call, target: tuple[str, int] | None) -> None: ...
    def check_parked_pulls(self) -> None: ...
    @property
    def parked_pulls(self) -> int: ...
    def put_topic(self, config: TopicConfig) -> None: ...
    def remove_topic(self, name: str) -> None: ...
    def put_group(self, config: SubscriptionGroupConfig) -> None: ...
    def remove_group(self, name: str) -> None: ...
    def put_subscription(self, group: str, subscription: SubscriptionData) -> str | None:
        """Adds a subscription of an online group. Returns the error if its expression does not compile."""
    def check_filter(self, expression_type: str, expression: str) -> tuple[int, str] | None:
        """Checks a filter expression. Returns the response code and the remark of a refusal, or None."""
    def remove_subscription(self, group: str, topic: str) -> None: ...
    def put_consumer_group(self, group: str, message_model: str | None) -> None: ...
    def remove_consumer_group(self, group: str) -> None: ...
    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None: ...
    def offset(self, group: str, topic: str, queue_id: int) -> int:
        """Returns the committed offset, or -1 if there is none."""
    def offsets(self, *, group: str | None = None, topic: str | None = None) -> dict[str, dict[int, int]]:
        """Returns committed offsets by `topic@group`, then by queue id."""
    def take_changed_offsets(self, limit: int) -> list[tuple[str, str | None]]:
        """Takes up to `limit` changed offsets: `topic@group` with its queues as JSON, or None if it was removed."""
    def remove_offsets(self, group: str, topic: str | None = None) -> None: ...
    def continue_ledger(self, last_id: int) -> None:
        """Begins to keep the rows of the ledger of pulls, with numbers behind `last_id`."""
    def put_client(self, connection: int, client_id: str) -> None:
        """Remembers the client id that a heartbeat told on a connection."""
    def remove_client(self, connection: int) -> None: ...
    def end_ledger_pulls(self, group: str) -> None:
        """Ends the open rows of a group's pulls, as a member wants something else."""
    def note_reset(self, group: str, topic: str, queue_id: int, client: str, start: int, stop: int) -> None:
        """Notes that an administrator asked the members of a group to move its offset."""
    def take_ledger(
        self, idle_ms: int
    ) -> tuple[list[tuple[int, int, str, str, int, str, str | None, str | None, int, int, int, int]], int | None]:
        """Returns the rows that are new or have grown, and the time of the first row that was dropped.

        A row has: number, kind (0 a pull, 1 a commit, 2 a reset, 3 the first offset), group, topic, queue, client, type
        of the filter, filter, start, stop, first and last time. Rows that did not grow since `idle_ms` end.
        """
    def set_permission(self, perm: int) -> None: ...
    def set_disk_usage(self, text: str) -> None: ...
    def count_sent_back(self, key: str) -> None: ...
    def count(self, name: str, key: str, size: int) -> None: ...
    def note_put(self, millis: int) -> None: ...
    def count_failed_put(self) -> None: ...
    def times(self) -> tuple[int, int, list[tuple[str, int]]]: ...
    def set_options(self, options: DataPlaneOptions) -> None: ...
    @property
    def unflushed(self) -> int: ...
    @property
    def harm(self) -> str | None: ...
    def take_harm_lines(self) -> list[str]: ...
    @property
    def skipped_messages(self) -> int: ...
    def take_skipped_messages(self) -> list[tuple[str, int, int, int, int, str]]: ...
    def counters(self) -> list[tuple[str, str, int, int, int]]: ...
    def close(self) -> None: ...

@final
class NameServers:
    """The name servers of a client, in random order. Requests go to one of them until it does not answer.

    Args:
        addresses: Addresses as `host:port`.
        connections: Object whose `request` sends a request.
        warn: Called with a log line when another name server is used.

    Source: `NettyRemotingClient.getAndCreateNameserverChannel`.
    """

    def __new__(cls, addresses: Sequence[str], connections: object, warn: Callable[[str], object]) -> NameServers: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def chosen(self) -> str | None:
        """The address to which the next request goes."""
    def check(self) -> None:
        """Raises `ClientError` (10004) if there is no name server."""
    def request(self, code: int, ext_fields: Mapping[str, str] | None = None, *, timeout: float = 3.0) -> Response:
        """Asks the name servers in turn until one answers.

        Raises `ClientError` (10004) if there is no name server, and `RemotingConnectError` if none answers.
        """

    def route(self, topic: str, timeout: float) -> TopicRouteData:
        """Fetches the route of a topic.

        Raises `ResponseError` if a name server refuses, and fails like `request`.
        """
    def readable_queues(self, topic: str, timeout: float) -> tuple[MessageQueue, ...]:
        """Fetches the readable queues of a topic, sorted; fails like `route`. Their brokers need no master."""
    def ping(self, timeout: float) -> None:
        """Raises `ClientError` (10001) if no name server answers."""

@final
class RouteTable:
    """The routes and broker addresses that all clients of an instance share. Each call is atomic.

    Args:
        name_servers: The name servers to ask.
        timeout: Seconds to wait for each name server.
        translate: Maps an address in a route to an address that is reachable from here.

    Source: `MQClientInstance.topicRouteTable`, `brokerAddrTable`, `brokerVersionTable`, `findBrokerAddressIn*`.
    """

    def __new__(
        cls, name_servers: NameServers, timeout: float, translate: Callable[[str], str] | None = None
    ) -> RouteTable: ...
    def update(self, topic: str, default: tuple[str, int] | None = None) -> bool:
        """Fetches the route of a topic. Returns whether it differs from the known route, which stays after an error.

        A topic that has no route yet gets that of `default`: a topic, and the maximum of queues per broker of a new
        topic. Raises `ResponseError` if a name server refuses, and `ClientError` (10001) if none answers.
        """
    def no_route_error(self, topic: str) -> ClientError:
        """Returns the error for a topic without a route: 10005, with the last refusal of a name server."""
    def readable_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns all readable queues, sorted. Their brokers need no master."""
    def get(self, topic: str) -> TopicRouteData | None: ...
    def brokers(self) -> dict[str, dict[int, str]]:
        """The addresses of all brokers, by name and id."""
    def publish_address(self, broker_name: str) -> str | None:
        """Returns the address of a broker's master. None if it is not known."""
    def subscribe_address(self, broker_name: str, broker_id: int = 0, *, only_this: bool = False) -> FoundBroker | None:
        """Returns the address of the broker with this id, or else of a slave's next id, or else of any of its ids.

        With `only_this`, the last choice is left out. None if no address is known.
        """
    def any_address(self, topic: str) -> str | None:
        """Returns the address of a broker of the topic, if possible a master. None if none is known."""
    def set_version(self, broker_name: str, address: str, version: int) -> None: ...
    def version(self, broker_name: str, address: str) -> int:
        """Returns the version of a broker as a number, from its answer to a heartbeat. 0 until then."""
    def clean_offline_brokers(self) -> list[str]:
        """Removes and returns the addresses that are no longer in any route."""

def is_timed(message: Message) -> bool:
    """Whether a message has a timer of RocketMQ 5. A message with a delay level ignores its timer."""

@final
class PublishQueues:
    """The queues of a topic that a producer may send to.

    Attributes:
        topic: The topic with its namespace.
        queues: The queues; their topics have no namespace.
    """

    @property
    def topic(self) -> str: ...
    @property
    def queues(self) -> tuple[MessageQueue, ...]: ...

@final
class MessageSender:
    """Sends the messages of a producer. Methods accept a message or an encoded `Outgoing`.

    `messages` are passed to hooks if `message` is an `Outgoing`.
    """

    def __new__(
        cls,
        connections: Connections,
        shared: object,
        sign: Sign | None,
        *,
        instance: object,
        options: ProducerOptions,
        namespace: str,
        is_registered: bool,
        encoder: MessageEncoder,
        hooks: Hooks[SendHook],
        hooked: HookedSends,
    ) -> MessageSender: ...
    def send(
        self,
        message: Message | Outgoing,
        queue: MessageQueue | None,
        timeout: float,
        selector: QueueSelector | None = None,
        argument: Any = None,
        messages: Sequence[Message] | None = None,
    ) -> SendResult:
        """Sends a message, with retries. Raises like `Producer.send`."""
    def submit(
        self,
        message: Message | Outgoing,
        queue: MessageQueue | None,
        timeout: float,
        callback: SendCallback,
        selector: QueueSelector | None = None,
        argument: Any = None,
        messages: Sequence[Message] | None = None,
    ) -> None:
        """Sends asynchronously. `callback` is called exactly once with the outcome, unless this call raises."""
    def send_oneway(
        self,
        message: Message | Outgoing,
        queue: MessageQueue | None,
        timeout: float,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> None: ...
    def begin_send(
        self,
        message: Message | Outgoing,
        queue: MessageQueue | None,
        timeout: float,
        selector: QueueSelector | None = None,
        argument: Any = None,
        messages: Sequence[Message] | None = None,
    ) -> Send:
        """Starts a send whose attempts an event loop makes one by one."""
    def queues_for(self, message: Message | Outgoing) -> PublishQueues:
        """Validates a message, and returns the queues of its topic."""
    def queues_of(self, topic: str) -> PublishQueues:
        """Returns the queues of a topic. If it does not exist, the queues that a broker will create for it."""
    def newest_queues(self, topic: str) -> PublishQueues | None:
        """Returns the queues from the newest known route of a topic."""
    def chosen_queue(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> MessageQueue | None:
        """Returns the queue that the application selected. None if the producer shall choose it."""
    def address_of(self, topic: str, broker_name: str) -> str:
        """Returns the address of a broker's master. If it is unknown, fetches the topic's route again."""
    @property
    def in_flight(self) -> int:
        """Number of asynchronous sends in flight."""
    def wait_until_sent(self, timeout: float) -> bool:
        """Waits until no asynchronous sends are in flight. Returns false after `timeout` seconds."""
    def knows(self, topic: str) -> bool:
        """Whether the queues of a topic are known, so that no name server has to be asked."""
    def topics(self) -> list[str]:
        """Returns the topics to which messages were sent, with their namespace."""

@final
class Send:
    """A send for an event loop. Call `begin`, `attempt` and `record` until `record` returns false."""

    def encode(self) -> None:
        """Encodes the message before its first attempt, since compressing a large body takes milliseconds."""
    def begin(self) -> None:
        """Begins the next attempt. Raises `RemotingTimeoutError` if the timeout is over."""
    def attempt(self, on_end: SendCallback, waits: bool) -> bool:
        """Makes the attempt. `on_end` is called once with the outcome, on any thread.

        Returns false if `waits` is false and the attempt would have to wait for a route, a connection or room. Raises
        `ClientError` for an unknown broker, and `RemotingError` if the request was not sent.
        """
    def record(self, end: SendResult | RmqError) -> bool:
        """Records the outcome of the attempt. Returns whether another attempt follows."""
    def result(self) -> SendResult:
        """Returns the last result, or raises the error of the send."""

@final
class UniqueIds:
    """Creates message ids. `month_bounds` returns the start of a time's month and of the next, in milliseconds."""

    def __new__(
        cls, ip: str, pid: int, tells_apart: int, month_bounds: Callable[[int], tuple[int, int]]
    ) -> UniqueIds: ...
    def next(self, now_ms: int | None = None) -> str:
        """Returns the next id, for the current time or `now_ms`."""

@final
class MessageEncoder:
    """Encodes messages into requests."""

    def __new__(
        cls,
        group: str,
        ids: UniqueIds,
        *,
        default_topic: str,
        default_topic_queue_nums: int,
        compress_over: int,
        instance_id: str | None,
        is_unit_mode: bool,
    ) -> MessageEncoder: ...
    def encode(self, message: Message, topic: str, added: list[tuple[str, str]] = ..., sys_flag: int = 0) -> Outgoing:
        """Encodes one message. `added` are properties that the producer adds."""
    def encode_batch(self, messages: list[Message], topic: str, wait_store: bool) -> Outgoing:
        """Encodes several messages as a batch. Does not check that they have the same topic."""

    def encode_rows(
        self, batches: Any, topic: str | None, wrap: Callable[[str], str], *, most_bytes: int, most_count: int
    ) -> list[Outgoing]:
        """Encodes Arrow rows in order, one topic per request. `wrap` checks a topic and adds the namespace."""

@final
class Outgoing:
    """An encoded message or batch, which can be sent to any queue of its topic."""

    @property
    def code(self) -> int: ...
    @property
    def unique_id(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def properties(self) -> str: ...
    @property
    def sys_flag(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    def __len__(self) -> int: ...
    def fields(self, queue_id: int) -> dict[str, str]:
        """Returns the header fields for a queue."""

@final
class MessageView:
    """A message that a client received. Its values are decoded from the answer's bytes when they are read.

    It has the same attributes as `rmqfast.MessageExt`. Two views are equal if broker, topic, queue id and queue offset
    of their records are equal.

    Args:
        record: The record of one message.
        broker_name: The broker that stores the message.
        topic: Topic to show in place of the record's topic.
        reconsume_times: Number of failed attempts to consume the message to show in place of the record's number.
        bounds: First offset of the queue and offset behind its last; shown as the properties MIN_OFFSET and MAX_OFFSET.
        max_body_bytes: Maximum bytes of a decompressed body.
        verify_crc: Whether the body is compared with its CRC, which Java's client does not do.

    Raises:
        RemotingProtocolError: The bytes are not a record.
        ArgumentError: The bytes are several records, or empty.

    Source: `MessageExt`, `MessageClientExt`.
    """

    def __new__(
        cls,
        record: bytes,
        *,
        broker_name: str | None = None,
        topic: str | None = None,
        reconsume_times: int | None = None,
        bounds: tuple[int, int] | None = None,
        max_body_bytes: int = ...,
        verify_crc: bool = False,
    ) -> MessageView: ...
    @builtins.property  # the class has a method of that name
    def topic(self) -> str: ...
    @builtins.property
    def broker_name(self) -> str | None: ...
    @builtins.property
    def queue_id(self) -> int: ...
    @builtins.property
    def queue_offset(self) -> int: ...
    @builtins.property
    def physical_offset(self) -> int: ...
    @builtins.property
    def msg_id(self) -> str: ...
    @builtins.property
    def offset_msg_id(self) -> str: ...
    @builtins.property
    def tags(self) -> str | None: ...
    @builtins.property
    def keys(self) -> str | None: ...
    @builtins.property
    def body(self) -> bytes:
        """The body, decompressed.

        Raises:
            CorruptError: The body does not decompress to `max_body_bytes` or less, or with `verify_crc` its CRC
                differs.
        """
    @builtins.property
    def properties(self) -> dict[str, str]: ...
    @builtins.property
    def born_timestamp(self) -> int: ...
    @builtins.property
    def store_timestamp(self) -> int: ...
    @builtins.property
    def born_host(self) -> str: ...
    @builtins.property
    def store_host(self) -> str: ...
    @builtins.property
    def flag(self) -> int: ...
    @builtins.property
    def sys_flag(self) -> int: ...
    @builtins.property
    def reconsume_times(self) -> int: ...
    @builtins.property
    def prepared_transaction_offset(self) -> int: ...
    @builtins.property
    def store_size(self) -> int: ...
    @builtins.property
    def body_crc(self) -> int: ...
    @builtins.property
    def transaction_id(self) -> str | None: ...
    @builtins.property
    def min_offset(self) -> int | None: ...
    @builtins.property
    def max_offset(self) -> int | None: ...
    @builtins.property
    def queue(self) -> MessageQueue: ...
    @builtins.property
    def record(self) -> bytes: ...
    def property(self, name: str) -> str | None: ...
    def seen_as(self, topic: str | None = None, reconsume_times: int | None = None) -> MessageView: ...
    def to_message_ext(self) -> MessageExt: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[bytes], dict[str, Any]]: ...

def decode_pull(
    body: bytes,
    *,
    broker_name: str | None,
    topic: str | None = None,
    tags: frozenset[str] | set[str] | None = None,
    bounds: tuple[int, int] | None = None,
    verify_crc: bool = False,
    max_body_bytes: int = ...,
) -> list[MessageView]:
    """Returns the messages of the answer to a pull, in their order.

    Args:
        body: Records of the commit log, one behind the other.
        broker_name: The broker that answered.
        topic: Topic to show in place of the records' topic.
        tags: Returns only messages whose whole tag is in this set; None or an empty set for all.
        bounds: `minOffset` and `maxOffset` of the answer.
        verify_crc: Whether reading a body that differs from its CRC is an error. Java's client does not check it.
        max_body_bytes: Maximum bytes of a decompressed body.

    Raises:
        RemotingProtocolError: Bytes that are not a record; the text names the position. Java drops them and all that
            follow.

    Source: `MessageDecoder.decodes`, `PullAPIWrapper.processPullResult`.
    """

def pull_fields(
    consumer_group: str,
    queue: MessageQueue,
    offset: int,
    max_messages: int,
    *,
    suspend_millis: int = 0,
    expression: str = "*",
    expression_type: str = "TAG",
    sub_version: int = 0,
) -> dict[str, str]:
    """Returns the header fields of a single pull that contains its own filter expression.

    Source: `PullMessageRequestHeader`.
    """

def read_pull(
    queue: MessageQueue,
    offset: int,
    *,
    code: int,
    remark: str | None,
    ext_fields: Mapping[str, str] | None,
    body: bytes,
    tags: frozenset[str] | set[str] | None = None,
    verify_crc: bool = False,
) -> Fetched:
    """Converts the answer to a pull. An error gives the status FAILED; without a valid answer the code is -1.

    Source: `MQClientAPIImpl.processPullResponse`.
    """

@final
class RangeReader:
    """Reads ranges of queues of one broker, with many pulls in flight.

    Attributes:
        name: Describes the ranges for logs.
        rows: Number of messages that were returned.
        size: Bytes of the pulled records.

    Source: `DefaultLitePullConsumerImpl.PullTaskImpl`.
    """

    @staticmethod
    def of_piece(read: TopicRead, piece: bytes) -> RangeReader: ...
    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def size(self) -> int: ...
    def next_batch(self) -> Batch | None: ...
    def close(self) -> None: ...

@final
class TopicSink:
    """The sink of a DataFrame, with its options and schema. It can be pickled.

    Attributes:
        columns: The columns that are sent, in the order of the schema. Columns that a broker sets itself, such as
            `queue_offset`, are left out; so is `topic` if the option is given.
        topic: Topic of all rows; None if the column `topic` names it.

    Source: `RocketMQConfig` of rocketmq-spark; `DefaultMQProducer`.
    """

    def __new__(cls, options: dict[str, str], fields: Sequence[tuple[str, str]]) -> TopicSink:
        """Parses options and schema. Checks in the driver what would otherwise fail in every task.

        Args:
            options: Options of the data source, as Spark passes them.
            fields: Name and Spark type of each column.

        Raises:
            ArgumentError: An invalid option or column.
            UnknownColumnError: An unknown column.
        """

    @staticmethod
    def column_types() -> list[tuple[str, list[str]]]:
        """Returns the columns that a sink accepts, with their types."""
    @property
    def columns(self) -> list[str]: ...
    @property
    def topic(self) -> str | None: ...
    def check(self, month: tuple[int, int]) -> None:
        """Checks that messages can be sent to the topic of the option `topic`. For `month` see `open`.

        Raises:
            ClientError: The topic does not exist, no name server answers, or several brokers have the rows' queue ids.
        """

    def open(self, partition: int, month: tuple[int, int]) -> TopicWriter:
        """Starts the writer of a partition. Sends nothing yet.

        Args:
            partition: Number of the partition, for errors.
            month: Start of this month and of the next in local time, in milliseconds; message ids count from it.
        """

@final
class TopicWriter:
    """Sends the rows of a partition on its own threads: each row at least once, and the rows of a queue in order.

    Source: `DefaultMQProducerImpl.sendDefaultImpl`, for its tries.
    """

    def write(self, batch: Any) -> None:
        """Takes an Arrow record batch. Waits while the queue of batches is full.

        Raises:
            ArgumentError: The type of a column differs from the schema.
            ClientError: A row of this batch or an earlier one cannot be sent.
        """

    def finish(self) -> Written:
        """Waits until brokers have stored all rows. Do not call `write` afterwards.

        Raises:
            ClientError: See `write`.
        """

    def close(self) -> None:
        """Stops the writer. Rows in its queue are dropped."""

@final
class Written:
    """The counts of a task, or of all tasks together.

    Attributes:
        rows: Rows that brokers have stored.
        bytes: Bytes of request bodies, including the messages' properties.
        batches: Number of requests.
        retries: Requests that were sent again after a failure. Some of their rows may be stored twice.
        less_safe: Requests whose flush to disk or copy to a slave was not confirmed in time.
    """

    def __new__(
        cls,
        rows: int = 0,
        bytes: int = 0,  # noqa: A002 - the attribute's name
        batches: int = 0,
        retries: int = 0,
        less_safe: int = 0,
    ) -> Written: ...
    @staticmethod
    def total(parts: Sequence[Written]) -> Written: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def less_safe(self) -> int: ...
    def counts(self) -> tuple[int, int, int, int, int]:
        """Returns the counts in the order of the attributes."""

@final
class SparkStream:
    """The driver's side of a stream. Its offsets are JSON strings, with the same form as in the JVM source.

    Source: `MicroBatchStream` of Spark.
    """

    @staticmethod
    def of_topic(read: TopicRead, *, warn: Callable[[str], object] | None = None) -> SparkStream:
        """Creates a stream of topics without a request. Ignores the end offsets of `read`.

        Args:
            read: The topics and the limits of a batch.
            warn: Called with each warning; None writes them to the logger `rmqfast.spark`.
        """

    @staticmethod
    def of_store(options: dict[str, str], *, warn: Callable[[str], object] | None = None) -> SparkStream:
        """Creates a stream of a store. The store is opened again in each call. For `warn` see `of_topic`.

        Raises:
            ArgumentError: Invalid options of a "store stream"; see `SparkOptions`.
        """

    def initial(self) -> str:
        """Returns the start offsets of a stream without a checkpoint.

        Raises:
            RmqError: See `TopicRead.plan`.
        """

    def aim(self) -> None:
        """Fixes the current end as the last offset of all later batches."""

    def latest(self, start: str | None, *, is_limited: bool) -> str:
        """Returns the end offsets of the batch that begins at `start`. They equal `start` if there is nothing to read.

        Args:
            start: The stream's offsets; with None the current end is returned.
            is_limited: Whether the limits of the options apply.

        Raises:
            ArgumentError: The checkpoint of another stream.
            DataLossError: Messages have expired, or a queue ends before the stream's offset, unless `failOnDataLoss` is
                false.
            ClientError: No name server or broker answers at the first call.
            StoreError: The store cannot be read.
        """

    def report(self) -> str | None:
        """Returns the last known end offsets. None if none are known yet."""

    def pieces(self, start: str, end: str) -> list[bytes]:
        """Returns the serialized tasks of a batch."""

    def commit(self, end: str) -> None:
        """Called when Spark has stored all rows before `end`. Commits the offsets for the group, if there is one."""

    def metrics(self, consumed: str | None) -> dict[str, str]:
        """Returns metrics about the messages after `consumed`, by name.

        Source: `KafkaMicroBatchStream.metrics` of Spark.
        """

    def close(self) -> None: ...

@final
class Fetched:
    """The answer to a pull.

    Attributes:
        queue: The queue.
        epoch: Number of the assignment or seek that the answer belongs to.
        status: FOUND, NO_NEW_MSG or NO_MATCHED_MSG. OFFSET_ILLEGAL: the queue does not have the offset; it is not
            pulled until a seek. FAILED: the broker refused, did not answer in time or sent malformed data, and is asked
            again.
        begin_offset: The offset of the pull, at which the previous answer ended.
        next_begin_offset: The offset of the next pull.
        min_offset: First offset of the queue.
        max_offset: Offset behind the last of the queue.
        offsets: Offsets of the first and the last message that passed the broker's filter; None without messages.
        last_store_timestamp: Store time of that last message in milliseconds since 1970; None without messages.
        size: Bytes of the records.
        elapsed: Seconds from the request to its answer; 0 if it had no messages.
        is_end: Whether all messages before the assignment's end were returned.
        suggested_broker_id: Id of the broker that the next pull should use.
        code: The broker's response code; -1 without a response.
        remark: Text of the broker, or of the failure.
        body: Records of the commit log.
        messages: Messages with one of the assignment's tags.

    Source: `PullResultExt`.
    """

    @property
    def queue(self) -> MessageQueue: ...
    @property
    def epoch(self) -> int: ...
    @property
    def status(self) -> str: ...
    @property
    def begin_offset(self) -> int: ...
    @property
    def next_begin_offset(self) -> int: ...
    @property
    def min_offset(self) -> int: ...
    @property
    def max_offset(self) -> int: ...
    @property
    def offsets(self) -> tuple[int, int] | None: ...
    @property
    def last_store_timestamp(self) -> int | None: ...
    @property
    def size(self) -> int: ...
    def __len__(self) -> int:
        """Number of messages that passed the broker's filter."""
    @property
    def elapsed(self) -> float: ...
    @property
    def is_end(self) -> bool: ...
    @property
    def suggested_broker_id(self) -> int: ...
    @property
    def code(self) -> int: ...
    @property
    def remark(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def messages(self) -> list[MessageView]: ...
    def messages_as(self, topic: str) -> list[MessageView]:
        """Returns the messages, with another topic to show, such as the topic without its namespace."""

    def changed(self) -> list[MessageView]:
        """Returns the messages, with any tag, whose body does not match its CRC. Reads all bodies.

        Source: `MessageDecoder.decode` with `checkCRC`, which Java's consumers do not use.
        """

@final
class PullerEvent:
    """The event that a connection was opened, or was lost and will be opened again."""

    @property
    def address(self) -> str: ...
    @property
    def is_connected(self) -> bool: ...
    @property
    def reason(self) -> str: ...

@final
class FlowControl:
    """The event that a queue is not pulled for now. Returned the first time, and then every thousandth time.

    Attributes:
        queue: The queue.
        messages: Its messages that are in flight, ready or in hand.
        size: Bytes of them.
        span: Offsets from the first unacknowledged message to the last received message.
        times: Number of times that any queue was not pulled for this reason.

    Source: `DefaultMQPushConsumerImpl.pullMessage`.
    """

    @property
    def queue(self) -> MessageQueue: ...
    @property
    def messages(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def span(self) -> int: ...
    @property
    def times(self) -> int: ...

@final
class Puller:
    """Pulls many queues over one connection per broker, with many pulls in flight. All consumers use it.

    Messages of a queue are returned in order and exactly once, also if connections fail. The puller reconnects forever,
    with growing pauses, and reports it through `take`. Each broker has a thread.

    The puller counts messages that are in flight, ready or in hand. A queue without a filter never has more than its
    threshold and one answer. When a threshold is reached, pulls stop until half of the messages are acknowledged.

    Args:
        consumer_group: The group of the pulls; brokers need not know it.
        depth: Maximum of pulls in flight for a broker, besides one for each queue that is at its end.
        batch: Maximum of messages in an answer. Brokers limit it to 32 messages or 256 KiB by default.
        suspend: Seconds that the broker holds a pull at a queue's end; 0 for not at all.
        timeout: Seconds to wait for an answer.
        connect_timeout: Seconds to wait for a connection.
        retry: Seconds before a queue is pulled again after a refusal.
        interval: Seconds before a queue is pulled again after an answer with messages. If it is not 0, a queue has one
            pull in flight.
        of_queue: Messages and bytes of a queue at which it is not pulled for now.
        in_all: Messages and bytes of all queues together at which no queue is pulled for now.
        max_span: Offsets from a queue's first unacknowledged message to its last received message beyond which it is
            not pulled for now.
        sys_flag: Bits of `PullSysFlag`. The bits for holding a pull and for storing an offset are added as needed.
        commits_offsets: Whether pulls from masters also commit the group's offsets.
        counts_until_done: Whether messages count until `done` is called. Otherwise `take` acknowledges them.
        tls: TLS settings; None for plain connections.
        ext_fields: Header fields of every pull.
        sign: Callable that gets code, header fields and body of a pull, and returns fields to add. Runs in the broker's
            thread.
        max_body_bytes: Maximum bytes of a decompressed body.
        verify_crc: Whether messages compare their bodies with their CRC.
        burst: Number of free places in `depth` that are filled together.
        gather: Bytes that `take` waits for, and the seconds it waits once there is an item.
        on_ready: Called when `take` has new items, and at the end. It runs in any thread, may be called needlessly, and
            must not wait or call the puller.

    Raises:
        ArgumentError: TLS settings without trusted authorities.

    Source: `PullMessageService`, `DefaultMQPushConsumerImpl.pullMessage`, `DefaultLitePullConsumerImpl.PullTaskImpl`.
    These have only one pull in flight for a queue.
    """

    def __new__(
        cls,
        *,
        consumer_group: str,
        depth: int = 8,
        batch: int = 32,
        suspend: float = 20.0,
        timeout: float = 30.0,
        connect_timeout: float = 3.0,
        retry: float = 1.0,
        interval: float = 0.0,
        of_queue: tuple[int, int] = ...,
        in_all: tuple[int, int] = ...,
        max_span: int = ...,
        sys_flag: int = ...,
        commits_offsets: bool = False,
        counts_until_done: bool = False,
        tls: TlsOptions | None = None,
        ext_fields: dict[str, str] | None = None,
        sign: Callable[[int, dict[str, str], bytes], Mapping[str, str]] | None = None,
        max_body_bytes: int = ...,
        verify_crc: bool = False,
        burst: int = 1,
        gather: tuple[int, float] = ...,
        on_ready: Callable[[], object] | None = None,
    ) -> Puller: ...
    def assign(
        self,
        queue: MessageQueue,
        address: str,
        offset: int,
        *,
        is_slave: bool = False,
        end: int | None = None,
        expression: str = "*",
        expression_type: str = "TAG",
        sub_version: int = 0,
        tags: frozenset[str] | set[str] | None = None,
        paused: bool = False,
        commit_offset: int = 0,
    ) -> int:
        """Pulls a queue from `offset` on, up to `end` or forever. Returns the epoch.

        Earlier items of the queue are dropped. If `paused`, the queue is not pulled before `resume`. `commit_offset`
        is the group's last known offset.

        Raises:
            ChannelClosedError: The puller is closed.
        """

    def remove(self, queue: MessageQueue) -> bool:
        """Stops pulling a queue and drops its items. Returns false if the queue was not pulled."""

    def seek(self, queue: MessageQueue, offset: int) -> int | None:
        """Continues at another offset and drops the queue's items. Returns the new epoch; None if it is not pulled."""

    def move_to(self, queue: MessageQueue, address: str, *, is_slave: bool = False) -> bool:
        """Pulls a queue from another broker and keeps its items. Returns false if the queue is not pulled.

        Raises:
            ChannelClosedError: The puller is closed.
        """

    def pause(self, queue: MessageQueue) -> bool:
        """Pauses a queue. Its items can still be taken. Returns false if the queue is not pulled."""

    def resume(self, queue: MessageQueue) -> bool:
        """Resumes a queue. Returns false if the queue is not pulled."""

    def subscribe(
        self,
        topic: str,
        *,
        expression: str,
        expression_type: str = "TAG",
        sub_version: int = 0,
        tags: frozenset[str] | set[str] | None = None,
    ) -> None:
        """Changes the filter of a topic's queues. Items that were received before stay."""

    def set_threshold(self, messages: int, size: int) -> None:
        """Changes `of_queue`."""

    def done(self, epoch: int, messages: int, size: int, position: int) -> None:
        """Acknowledges messages that were taken.

        Args:
            epoch: Epoch of the `Fetched`. Ignored if the queue has another epoch by now.
            messages: Number of messages.
            size: Bytes of them.
            position: First offset that is not acknowledged, or the offset behind the last.
        """

    def give_back(self, fetched: Fetched) -> None:
        """Puts an answer back, to be taken before all others. Ignored if its queue was removed or got a seek."""

    def take(self, timeout: float, *, max_items: int = 64) -> list[Fetched | PullerEvent | FlowControl]:
        """Returns received items. Waits up to `timeout` seconds for the first item.

        Raises:
            ChannelClosedError: The puller is closed.
            ForkError: The puller was opened before a fork, in the parent process.
            KeyboardInterrupt: Ctrl-C, within 200 ms.
        """

    @property
    def held(self) -> tuple[int, int]:
        """Number and bytes of the messages that were received but not taken."""

    @property
    def in_hand(self) -> tuple[int, int]:
        """Number and bytes of the messages that were taken but not acknowledged."""

    @property
    def is_handled(self) -> bool:
        """Whether all messages are handled: nothing is in flight or ready, and a thread waits in `take`."""

    @property
    def full_times(self) -> int:
        """Number of times that a queue was not pulled because a threshold was reached."""

    def close(self) -> None:
        """Ends the threads and the connections. Further calls have no effect."""

def messages_to_arrow(
    messages: Sequence[MessageView], columns: list[str] | None = None, *, microseconds: bool = False
) -> Batch:
    """Converts messages to one Arrow batch, in order. A value that a view replaces is taken from the view.

    Raises:
        UnknownColumnError: A column that the row does not have.
        ArgumentError: The messages have more than 256 MiB.
    """

def fetched_to_arrow(
    fetched: Sequence[Fetched],
    columns: list[str] | None = None,
    *,
    microseconds: bool = False,
    max_body_bytes: int = ...,
) -> list[Batch]:
    """Converts a puller's answers to Arrow batches, in order, without creating an object for each message.

    Raises:
        UnknownColumnError: A column that the row does not have.
    """
