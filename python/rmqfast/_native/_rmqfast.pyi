"""The extension: a thin border to the store crate. Its users are `rmqfast.store` and `rmqfast.message` only."""

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
from rmqfast.remoting.response import Response
from rmqfast.remoting.server_options import ServerOptions
from rmqfast.remoting.tls_options import TlsOptions
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig
from rmqfast.store.get_limits import GetLimits
from rmqfast.store.request import ScanRequest
from rmqfast.store.retention import RetentionOptions
from rmqfast.store.writer import AppendOptions

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
    "InFlight",
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
    "check_agreed",
    "check_not_expired",
    "columns_of_schema",
    "config_text",
    "cut_copy",
    "decode_pull",
    "fetched_to_arrow",
    "is_directory",
    "is_file",
    "is_legal_name",
    "is_timed",
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
    "no_route_error",
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
    "subscribe_queues",
    "unwrap_namespace",
    "used_percent",
    "without_namespace",
    "wrap_namespace",
]

__version__: str
COLUMNS: list[str]
#: Topics that no client may send to; those of the system, which are the same in all namespaces.
FORBIDDEN_TOPICS: list[str]
SYSTEM_TOPICS: list[str]
#: Characters at most of a topic; of one that a client names to a broker, which may be that of a group's retries.
MAX_TOPIC: int
MAX_NAMED_TOPIC: int

_Piece: TypeAlias = tuple[str, int, int, bool]
_Damage: TypeAlias = tuple[int, int, str, str]
_Row: TypeAlias = dict[str, Any]
_Rows: TypeAlias = tuple[list[_Row], list[_Damage]]
_Options: TypeAlias = tuple[str | None, int]
_Cleaned: TypeAlias = tuple[int, int, int, int, int, int | None, bool, int]

@final
class Store:
    """A store directory, opened for reading."""

    @staticmethod
    def open(path: str, *, commit_log_dirs: list[str], io: str, pinned: bool) -> Store:
        """`pinned`: what is added to its files from now on is not read."""
    def refreshed(self) -> Store:
        """The store as it is now, pinned; both close together."""
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
    def scan(self, request: ScanRequest, *, way: str | None, threads: int, fails_on_damage: bool) -> Scan: ...
    def scan_pieces(self, request: ScanRequest, pieces: list[_Piece]) -> Scan: ...
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
    """A batch of rows, for every library that knows Arrow's PyCapsule interface: `pyarrow.record_batch(batch)`."""

    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Scan:
    """Batches of a scan; one consumer takes them."""

    def stream(self, on_end: Callable[[], object]) -> object:
        """The Arrow C stream; `on_end` is called once it ends or is released, if there was damage."""
    def __arrow_c_schema__(self) -> object: ...
    def next_batch(self) -> Batch | None: ...
    @property
    def fails_on_damage(self) -> bool: ...
    @property
    def damage(self) -> tuple[list[_Damage], int]: ...

@final
class Tail:
    """Messages of a store as they come."""

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
    """Options of a Spark read ("store batch", "store stream", "topic batch", "topic stream") or of its "sink", read."""

    def __new__(cls, kind: str, options: dict[str, str]) -> SparkOptions: ...
    @staticmethod
    def names(kind: str) -> list[str]:
        """Names of options and aliases, as errors list them."""
    @staticmethod
    def arguments(kind: str) -> list[tuple[str, str]]:
        """Name of each option, and the argument of Python that says the same."""
    @property
    def values(self) -> dict[str, Any]:
        """Each argument with its value; None where there is none."""
    @property
    def begin(self) -> str: ...
    def are_offsets_whole(self) -> bool: ...
    def offset_bounds(
        self, queues: Mapping[int, tuple[int, int]]
    ) -> tuple[builtins.dict[int, int], builtins.dict[int, int]]: ...

@final
class Selection:
    """What filters leave of the read of a store."""

    def __new__(
        cls,
        *,
        topic: str | None,
        only_topic: str | None,
        has_tags: bool,
        broker_names: Sequence[str] | None,
        queue_ids: Sequence[int] | None,
        has_offsets_by_queue: bool,
        offsets: tuple[int | None, int | None],
        times: tuple[int | None, int | None],
    ) -> Selection: ...
    def take(self, filters: list[tuple[str, str, list[object]]]) -> list[bool]:
        """Kind, column and values of filters; a time is `(microseconds,)`. Tells which were taken."""
    @property
    def only_topic(self) -> str | None: ...
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
    """Why a topic or a group cannot have a name, in RocketMQ's words; None where it can.

    Args:
        rule: What it is for: a group; a topic of a client, one that it sends to, alone or in a batch; a topic that a
            broker makes, or that a client names to a broker.
        name: The name.

    Source: `Validators`, `TopicValidator`.
    """

def is_legal_name(name: str) -> bool:
    """Whether it has only letters, digits, `%`, `|`, `-` and `_`, and at least one.

    Source: `TopicValidator.isTopicOrGroupIllegal`.
    """

def wrap_namespace(namespace: str, resource: str) -> str: ...
def unwrap_namespace(namespace: str, resource: str) -> str: ...
def without_namespace(resource: str) -> str: ...
def panic(text: str) -> Never:
    """Panics; a test of a build asks whether that is an exception on its platform."""

def plain_remark(remark: str) -> str: ...
def step_after(remark: str) -> str | None: ...
def check_agreed(wanted: Sequence[str] | None, columns: Sequence[str]) -> None: ...
def check_not_expired(name: str, bounds: Mapping[int, int], queues: Mapping[int, tuple[int, int]]) -> None: ...
def columns_of_schema(fields: list[tuple[str, str, bool]]) -> list[str]: ...

@final
class TopicRead:
    """What options ask of topics of a cluster, as far as filters leave it; it is pickled to the tasks.

    Args:
        kind: "topic batch" or "topic stream".
        options: As Spark gives them to a data source.
        columns: Columns of the row, in order; those of the option `columns`, if that is given.
        config: How the cluster is reached, where no option says that: `translate_address`, other timeouts.

    Raises:
        ArgumentError: An unknown option, a text that is no such value, a value out of range, not one kind of topics.
        UnknownColumnError: The row has no such column.
        ExpressionError: `tags` or `sql` does not parse.
        ClientError: A name that topics or groups may not have.

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
        """The read that filters leave, as tasks make it anew."""

    def take(self, filters: list[tuple[str, str, list[object]]]) -> tuple[TopicRead, list[bool]]:
        """What filters leave of the read, and which of them it does itself.

        Args:
            filters: Kind, column and values; a time is `(microseconds,)`.
        """

    def check(self) -> None:
        """Looks whether the read can be: not at offsets, which a stream with a checkpoint has no use for.

        Raises:
            UnknownTopicError: The name servers do not know a topic.
            ArgumentError: A queue that no broker has.
            ClientError: No name server answers, or a broker refuses; one that does not answer now may do so later.
        """

    def plan(self) -> list[bytes]:
        """Fixes what is read, and cuts it into pieces, those of pulls before those of logs; none of nothing.

        Raises:
            ArgumentError: There is no copy of a broker, where copies are read.
            UnknownTopicError: The name servers do not know a topic.
            DataLossError: An offset that a queue does not have, unless `failOnDataLoss` is false.
            ClientError: A broker does not answer, or refuses.

        Source: `RocketMQSource.getOffsetRanges`.
        """

    def plan_with_ways(self) -> tuple[list[bytes], str]:
        """As `plan`; besides, as the text of an option, whether each broker's log is read or why it is not.

        Raises:
            RmqError: As `plan`.
        """

def pieces_option(pieces: Sequence[bytes]) -> str:
    """Pieces as the text of an option, which says what was planned.

    Raises:
        ArgumentError: Bytes of another release.
    """

def names_a_cluster(options: dict[str, str]) -> bool:
    """Whether the options of a read or a table are those of a live cluster, not of a store directory."""

def read_piece(piece: bytes) -> tuple[str | None, list[tuple[str, str, int, int, int]]]:
    """The address and the ranges of a piece: topic, broker, queue, the first offset, the one behind the last.

    Raises:
        ArgumentError: Bytes of another release.
    """

def read_store_piece(piece: bytes) -> tuple[str, int, int, bool]:
    """The way, both ends and whether bodies are checked, of a piece of a store.

    Raises:
        ArgumentError: Bytes of another release.
    """

def spark_row(columns: Sequence[str] | None) -> list[tuple[str, str]]: ...
def namespace_of_endpoint(text: str) -> str | None: ...
def parse_message_id(message_id: str) -> tuple[str, int, int] | None:
    """The IP address, the port and the physical offset in a broker's message id; `None` if it is no such id.

    Example:
        >>> parse_message_id("7F00000100002A9F0000000000000400")
        ('127.0.0.1', 10911, 1024)
    """

def parse_name_servers(text: str) -> list[str]: ...
def read_fastjson(body: bytes) -> Any:
    """The value that a body says in RocketMQ's JSON.

    Raises:
        RemotingProtocolError: It is none; says at which character.
    """

def sign_fields(
    access_key: str, secret_key: str, security_token: str | None, ext_fields: Mapping[str, str], body: bytes
) -> dict[str, str]: ...
def signature_of(ext_fields: Mapping[str, str], body: bytes, secret_key: bytes, without: str) -> bytes: ...
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
    """Of the disk that holds a directory, rounded up; None where it cannot be looked at.

    Source: `UtilAll.getDiskPartitionSpaceUsedPercent`.
    """

@final
class Appender:
    """A store that is appended to."""

    @staticmethod
    def open(
        path: str,
        options: AppendOptions,
        *,
        retention: RetentionOptions | None,
        progress: Callable[[int, int], object] | None,
        replica_from: int | None = None,
    ) -> Appender:
        """Opens a store, or makes a new one.

        With `replica_from` it is a copy of a master's log, which takes no messages but what a `Follower` brings; a new
        copy begins at that offset of the log.
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
        """Removes queues of a copy that its master has no more, each with the offset of its next message."""

    def close(self) -> None: ...
    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]: ...
    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None: ...
    def record(self, physical_offset: int) -> bytes | None: ...
    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int: ...
    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int: ...
    def query(self, topic: str, key: str, max_num: int, between: tuple[int, int]) -> tuple[list[bytes], int, int]: ...
    def log_bounds(self) -> tuple[int, int]: ...
    def log_file_size(self) -> int: ...
    def compare_from(self, end: int, most: int) -> int:
        """Where a copy is to be compared from, up to `end`: a record; so many bytes, unless it is longer."""

    def earliest_store_time(self, topic: str | None, queue_id: int | None) -> int: ...

_End: TypeAlias = tuple[
    Literal["stopped", "connect", "closed", "silent", "stalled", "frame", "diverged", "broken", "full", "store"],
    str,
    int | None,
]

@final
class Follower:
    """A master's log, followed over its HA port into a copy, until that ends for one reason or another.

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
        """Begins to follow.

        Args:
            copy: The copy, opened with `replica_from`.
            path: Its directory.
            address: The master's HA port, `host:port`.
            start: Where to begin: the copy's end, or an offset before it, from which log and copy are compared.
            max_record: Bytes of a record at most.
            lists: Whether queues and index list what comes.
            cold_rate: Bytes a second at most, for what is old; 0 for no limit.
            cold_before: What stands before this is old.
            counts: It is a slave, and reports what it has: sends may wait for that.
            tls: Who this side is, and who is trusted, where the HA port has TLS.
            topics: The topics that the copy keeps, which has a mark; all of the log without any.
        """

    def progress(self) -> tuple[int, int, int, int, bool]:
        """How far it is.

        Returns:
            Up to where the log is taken, listed and compared, store time of the last record, whether all is compared.
        """

    def wait(self, timeout: float) -> _End | None:
        """Waits until it ended, or for so many seconds: why, in words, and where in the log."""

    def stop(self) -> None:
        """Ends it, once all whole records that were read are written."""

def begin_mark(path: str, position: int, copy_end: int) -> None:
    """Notes that a copy of some topics, whose own log ends at `copy_end`, begins at `position` of its master's."""

def load_mark(path: str) -> tuple[int, int] | None:
    """Up to where a copy of some topics has its master's log, and from where that is compared; None of another copy.

    Raises:
        CorruptError: The mark cannot be read.
    """

def cut_copy(path: str, at: int, options: AppendOptions, *, progress: Callable[[int, int], object] | None) -> int:
    """Cuts the log of a copy that nobody has open, behind its last record that ends at `at` or before.

    Returns:
        Where the log ends then.
    """

def log_source(
    config: dict[str, str], address: str
) -> tuple[list[str], int, Literal["nobody", "reports", "connections"], bool]:
    """Where a broker serves its log, by its configuration: addresses, bytes of a file, what sends wait for, TLS.

    Raises:
        ArgumentError: Its log cannot be read.
    """

def newest_copy(directory: Path) -> Path:
    """The newest copy of the broker that `directory` is named after: `DIR`, or a later one beside it, `DIR.2`.

    The note in a copy tells whose it is: another broker may be called `DIR.2`.

    Raises:
        StoreIOError: A directory or a note cannot be read.
        CorruptError: A note is none.
    """

def local_path(name: str, given: str | os.PathLike[str]) -> Path:
    """A path of this machine, from what a user gave for `name`: see `rmqfast.paths`.

    Raises:
        ArgumentError: An empty text, or a URL of another system.
    """

def path_exists(path: str | os.PathLike[str]) -> bool:
    """Whether anything has this name, be it a link that leads nowhere.

    Raises:
        StoreIOError: It cannot be looked at.
    """

def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file.

    Raises:
        StoreIOError: It cannot be looked at.
        CorruptError: A link that leads nowhere.
    """

def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether there is a directory.

    Raises:
        StoreIOError: It cannot be looked at.
        CorruptError: A link that leads nowhere.
    """

def list_directory(path: str | os.PathLike[str]) -> list[Path]:
    """The paths that a directory lists, in no order; none where it is not there.

    Raises:
        StoreIOError: It cannot be looked at.
        CorruptError: A link that leads nowhere.
    """

_Answered: TypeAlias = tuple[int, str | None, dict[str, str], bytes, int]

@final
class Channel:
    """A connection over which both sides ask; two of the same connection are equal."""

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
    """Requests that Python answers, and connections that ended."""

    def __new__(cls, capacity: int, *, max_body: int = ..., unlimited: list[int] = ...) -> Mailbox: ...
    def take(self, timeout: float, *, takes_large: bool = True) -> Call | tuple[Channel, str | None] | str | None: ...
    def dropped(self) -> None:
        """Counts a one-way request that is not done: a warning says how many there were."""
    @property
    def is_closed(self) -> bool: ...
    def __len__(self) -> int: ...
    def close(self) -> None: ...

@final
class RemotingServer:
    """A listening socket whose requests go to a mailbox, or to a data plane first."""

    @staticmethod
    def bind(address: str, handler: Mailbox | DataPlane, options: ServerOptions) -> RemotingServer: ...
    @property
    def address(self) -> str: ...
    @property
    def connections(self) -> int: ...
    def close(self) -> None: ...

@final
class RemotingClient:
    """A connection that this side opened; one caller at a time."""

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
        """There are threads that take."""
    def take(self, max_count: int, timeout: float) -> Iterator[tuple[Callable[[Any], object], Any]] | None:
        """Who is called, and with what: an answer as a tuple, an error, or what was made of an answer."""
    @property
    def in_flight(self) -> int: ...
    def drain(self) -> None:
        """Takes no further requests; waits until those are written that nobody waits for, while peers take of them."""
    def close(self) -> list[tuple[str, int]]:
        """Ends all; how many requests that are not answered were never written, by address."""

@final
class DataPlane:
    """What happens per message, without the GIL."""

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
        """Serves the log to slaves at `ip:port`, until `close`; to those on this machine where `slaves` names none.

        Args:
            address: Where to listen.
            slaves: Their addresses, without ports.
            max_frame: Bytes of the log in a frame, at most.
            heartbeat: Seconds without a frame, after which an empty one is sent.
            housekeeping: Seconds without a report, or without room for a byte, after which a connection is closed.
            tls: Who this side is, and who may connect; without, connections are plain.

        Raises:
            RemotingError: It cannot listen there.
            ArgumentError: An address of a slave that is none.

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
        """Registers a subscription of an online group. Returns why its expression does not compile."""
    def check_filter(self, expression_type: str, expression: str) -> tuple[int, str] | None:
        """Returns code and remark of the refusal, where pulls could not use a filter."""
    def remove_subscription(self, group: str, topic: str) -> None: ...
    def put_consumer_group(self, group: str, message_model: str | None) -> None: ...
    def remove_consumer_group(self, group: str) -> None: ...
    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None: ...
    def offset(self, group: str, topic: str, queue_id: int) -> int:
        """Returns the committed offset; -1 where there is none."""
    def offsets(self, *, group: str | None = None, topic: str | None = None) -> dict[str, dict[int, int]]:
        """Returns committed offsets by `topic@group`, then by queue id."""
    def take_changed_offsets(self, limit: int) -> list[tuple[str, str | None]]:
        """Takes changed offsets, at most `limit`: `topic@group` and its queues as JSON, None where removed."""
    def remove_offsets(self, group: str, topic: str | None = None) -> None: ...
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
class InFlight:
    """Counts sends and their bytes; whoever would exceed a limit waits. What is larger may go while it is alone."""

    def __new__(cls, max_count: int, max_bytes: int) -> InFlight: ...
    def try_take(self, size: int) -> bool:
        """Takes room for one send, if there is some."""
    def take(self, size: int, timeout: float) -> None:
        """Takes room for one send; waits for it, and raises `RemotingTimeoutError` where none came free in time."""
    def give_back(self, size: int) -> None:
        """A send has ended."""
    def wait_until_empty(self, timeout: float) -> bool:
        """Waits until nothing is on its way; whether that came true in time."""
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...

@final
class NameServers:
    """The name servers of a client: shuffled, one chosen, the next one when that does not answer.

    Args:
        addresses: `host:port` each.
        connections: Its `request` asks.
        warn: Is called with a line for the log where another name server is asked from now on.

    Source: `NettyRemotingClient.getAndCreateNameserverChannel`.
    """

    def __new__(cls, addresses: Sequence[str], connections: object, warn: Callable[[str], object]) -> NameServers: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def chosen(self) -> str | None:
        """The address that gets the next request."""
    def check(self) -> None:
        """Raises `ClientError` (10004) if there is no name server."""
    def request(self, code: int, ext_fields: Mapping[str, str] | None = None, *, timeout: float = 3.0) -> Response:
        """Asks one name server after the other until one answers.

        Raises `ClientError` (10004) if there is none, `RemotingConnectError` with each failure if none answers.
        """

def no_route_error(topic: str, refusal: tuple[int, str] | None = None) -> ClientError:
    """The error for a topic without a route: 10005, with the code and the remark of the name server."""

@final
class RouteTable:
    """The routes of topics and the addresses of brokers, for all clients of an instance; each call is atomic.

    Args:
        translate: Maps an address of a route to the one that is reachable from here.

    Source: `MQClientInstance.topicRouteTable`, `brokerAddrTable`, `brokerVersionTable`, `findBrokerAddressIn*`.
    """

    def __new__(cls, translate: Callable[[str], str] | None = None) -> RouteTable: ...
    def put(self, topic: str, route: TopicRouteData, *, new_topic_queues: int | None = None) -> bool:
        """Takes the route of a topic; returns whether it says something new.

        Args:
            topic: The topic.
            route: Its route, or that of the default topic.
            new_topic_queues: The number of queues that the topic gets, which does not exist yet.
        """
    def get(self, topic: str) -> TopicRouteData | None: ...
    def brokers(self) -> dict[str, dict[int, str]]:
        """The addresses of all brokers, by name and id."""
    def publish_address(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
    def subscribe_address(self, broker_name: str, broker_id: int = 0, *, only_this: bool = False) -> FoundBroker | None:
        """The address that a consumer reads from: the broker with this id, the next one, or with that name any."""
    def any_address(self, topic: str) -> str | None:
        """The address of one of a topic's brokers: its master, or else any of its slaves."""
    def set_version(self, broker_name: str, address: str, version: int) -> None: ...
    def version(self, broker_name: str, address: str) -> int:
        """The ordinal of a broker's release, as its answer to a heartbeat says it; 0 until then."""
    def clean_offline_brokers(self) -> list[str]:
        """Removes and returns the addresses that no route has any more."""

def subscribe_queues(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """All readable queues, sorted; brokers need no master."""

def is_timed(message: Message) -> bool:
    """Whether a message has a timer of RocketMQ 5 that counts: beside a delay level none does."""

@final
class PublishQueues:
    """The queues of a topic that a producer may send to.

    Attributes:
        topic: The topic as brokers know it.
        queues: The queues, with the topic as the application knows it.
    """

    @property
    def topic(self) -> str: ...
    @property
    def queues(self) -> tuple[MessageQueue, ...]: ...

@final
class MessageSender:
    """Sends the messages of a producer, and what was encoded of messages before: `message` is either of them.

    `messages` are those that hooks see, where `message` was encoded.
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
        in_flight: InFlight,
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
        """Makes attempts until one has stored the message; raises as `Producer.send`."""
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
        """Sends, and has `callback` called with the `SendResult` or the error, exactly once; not where this raises."""
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
        """A send whose attempts are made one by one, for an event loop."""
    def queues_for(self, message: Message | Outgoing) -> PublishQueues:
        """Checks a message, and returns the queues that it may go to."""
    def queues_of(self, topic: str) -> PublishQueues:
        """The queues of a topic; of one that is not there those that it would get."""
    def newest_queues(self, topic: str) -> PublishQueues | None:
        """The queues of a topic as its newest route has them."""
    def chosen_queue(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> MessageQueue | None:
        """The queue that the application wants; `None` where it leaves the choice."""
    def address_of(self, topic: str, broker_name: str) -> str:
        """The address of a broker's master; asks for the route of the topic once more where none is known."""
    def knows(self, topic: str) -> bool:
        """Whether the queues of a topic are known, so that nobody has to be asked."""
    def topics(self) -> list[str]:
        """The topics that messages go to, as brokers know them."""

@final
class Send:
    """One send of an event loop: `begin` an attempt, make it, and `record` its end, until that says no."""

    def encode(self) -> None:
        """Encodes the message beforehand, as to compress a large body takes milliseconds."""
    def begin(self) -> None:
        """Begins the next attempt; raises `RemotingTimeoutError` where the time is over."""
    def attempt(self, on_end: SendCallback, waits: bool) -> bool:
        """Makes the attempt; `on_end` is called once with its end, on any thread.

        Returns whether it was sent: not where that would have to wait for a route, a connection or room, unless it
        `waits`. Raises `ClientError` where the broker is not known, `RemotingError` where it was not sent.
        """
    def record(self, end: SendResult | RmqError) -> bool:
        """Records how the attempt ended; returns whether there is to be another one."""
    def result(self) -> SendResult:
        """The last result; raises the error that says why there is none."""

@final
class UniqueIds:
    """Makes the ids of messages: `month_bounds` says when the month of a time began and when the next one does."""

    def __new__(
        cls, ip: str, pid: int, tells_apart: int, month_bounds: Callable[[int], tuple[int, int]]
    ) -> UniqueIds: ...
    def next(self, now_ms: int | None = None) -> str:
        """The next id, of this moment unless a time is given."""

@final
class MessageEncoder:
    """Makes requests of messages."""

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
        """The request of one message; `added` are properties of the producer's own."""
    def encode_batch(self, messages: list[Message], topic: str, wait_store: bool) -> Outgoing:
        """The request of several messages of one topic, which is not checked."""

    def encode_rows(
        self, batches: Any, topic: str | None, wrap: Callable[[str], str], *, most_bytes: int, most_count: int
    ) -> list[Outgoing]:
        """The requests of all rows of Arrow batches, in order; each of one topic, which `wrap` checks and wraps."""

@final
class Outgoing:
    """A request that sends a message, or a batch of them, to whichever queue."""

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
        """The header's fields for a queue."""

@final
class MessageView:
    """A message that a client got; its values are read from the answer's bytes when they are asked for.

    It has the row's names, as `rmqfast.MessageExt`. Two views are equal if
    broker, topic, queue and queue offset are, whatever topic they are shown with.

    Args:
        record: The record of one message.
        broker_name: The broker that has it.
        topic: The topic that is shown, in place of the one it is stored under.
        reconsume_times: What is shown of how often it was consumed in vain.
        bounds: The first offset of the queue, and the one behind its last: they become MIN_OFFSET and MAX_OFFSET.
        max_body_bytes: Bytes of a decompressed body at most.
        verify_crc: Whether the body is compared with its CRC, as Java's client does not.

    Raises:
        RemotingProtocolError: Bytes that are no record.
        ArgumentError: More records, or none.

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
            CorruptError: It does not decompress to `max_body_bytes` at most, or differs from its CRC with `verify_crc`.
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
    """The messages of a pull's answer, in its order.

    Args:
        body: Records of the commit log, one behind the other.
        broker_name: The broker that answered.
        topic: The topic that the messages are shown with.
        tags: Only messages whose whole tag is one of these; None or an empty set for all.
        bounds: `minOffset` and `maxOffset` of the answer.
        verify_crc: Whether a body that is not what its CRC is of is an error once it is asked for, which Java's client
            does not look at.
        max_body_bytes: Bytes of a decompressed body at most.

    Raises:
        RemotingProtocolError: Bytes that are no record; says at which byte. Java drops them and what follows.

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
    """The header fields of a pull with an expression of its own, which goes out as any other request does.

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
    """What the answer to a pull says: of an error the status is FAILED, the code -1 where it is no answer to a pull.

    Source: `MQClientAPIImpl.processPullResponse`.
    """

@final
class RangeReader:
    """Reads ranges of queues of one broker, many pulls in flight at once.

    Attributes:
        name: The ranges, for a log.
        rows: Messages that were handed out.
        size: Bytes of records that were pulled.

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
    """How the rows of a DataFrame become messages: what options and a schema ask for. It can be pickled.

    Attributes:
        columns: Those that are sent, in the order of the schema. What a broker gives to each message itself, as
            `queue_offset`, may be in the schema and is left out; so is a column `topic` beside the option.
        topic: Where all rows go; None where the rows say it.

    Source: `RocketMQConfig` of rocketmq-spark; `DefaultMQProducer`.
    """

    def __new__(cls, options: dict[str, str], fields: Sequence[tuple[str, str]]) -> TopicSink:
        """Checks in the driver what would otherwise fail in every task.

        Args:
            options: As Spark gives them to a data source.
            fields: Name and type of each column, as Spark writes them.

        Raises:
            ArgumentError: An option or a column that cannot be.
            UnknownColumnError: A column that messages do not have.
        """

    @staticmethod
    def column_types() -> list[tuple[str, list[str]]]:
        """The columns that a sink takes, each with its types."""
    @property
    def columns(self) -> list[str]: ...
    @property
    def topic(self) -> str | None: ...
    def check(self, month: tuple[int, int]) -> None:
        """Asks a name server whether the topic is there; `month` as in `open`.

        Raises:
            ClientError: It is not, or no name server answers, or several brokers have the queues that rows name.
        """

    def open(self, partition: int, month: tuple[int, int]) -> TopicWriter:
        """Begins to send the rows of a partition; nobody is asked yet.

        Args:
            partition: Its number, for errors.
            month: When this month began here and when the next one does, in milliseconds: ids count from there.
        """

@final
class TopicWriter:
    """Sends the rows of a partition in threads of its own: rows of one queue in their order, each at least once.

    Source: `DefaultMQProducerImpl.sendDefaultImpl`, for its tries.
    """

    def write(self, batch: Any) -> None:
        """Takes an Arrow record batch; waits while there is enough to send.

        Raises:
            ArgumentError: A column of another type than the schema said.
            ClientError: A row that cannot be sent, of this batch or one before.
        """

    def finish(self) -> Written:
        """Waits until brokers have stored all; nothing may be written any more.

        Raises:
            ClientError: As `write`.
        """

    def close(self) -> None:
        """Sends no more."""

@final
class Written:
    """Counts of a task, or of all tasks.

    Attributes:
        rows: Rows that brokers have stored.
        bytes: Bytes of the bodies of the requests, in which messages stand with their properties.
        batches: Requests.
        retries: Requests that were sent once more, as no broker took them: some of their rows may be stored twice.
        less_safe: Requests that are stored, but not as safely as the broker is told to: the disk or a slave was late.
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
        """All of them, in order."""

@final
class SparkStream:
    """A stream as its driver asks it. Offsets are the texts of a checkpoint, which Spark's JVM has in common with this.

    Source: `MicroBatchStream` of Spark.
    """

    @staticmethod
    def of_topic(read: TopicRead) -> SparkStream:
        """A stream of topics; the end of `read` is not looked at. Nobody is asked yet."""

    @staticmethod
    def of_store(options: dict[str, str]) -> SparkStream:
        """The stream of a store that options ask for; the store is opened for each question.

        Raises:
            ArgumentError: As `SparkOptions` of a "store stream" raises.
        """

    def initial(self) -> str:
        """Where a stream without a checkpoint begins.

        Raises:
            RmqError: As `TopicRead.plan`.
        """

    def aim(self) -> None:
        """From now on no batch goes beyond what there is now."""

    def latest(self, start: str | None, *, is_limited: bool) -> str:
        """How far the batch goes that begins at `start`; as far as that, where there is nothing to read yet.

        Args:
            start: Where the stream is; None where Spark does not say, which goes to the end.
            is_limited: Whether the limits hold.

        Raises:
            ArgumentError: The checkpoint of another stream.
            DataLossError: Retention overtook the stream, or a queue ends before it, unless `failOnDataLoss` is
                false.
            ClientError: Nobody answers, before anybody did.
            StoreError: The store cannot be read.
        """

    def report(self) -> str | None:
        """The last end that is known."""

    def pieces(self, start: str, end: str) -> list[bytes]:
        """The tasks of a batch."""

    def commit(self, end: str) -> None:
        """Spark has stored all before `end`: a group's offsets follow, where that is wanted; what fails is logged."""

    def metrics(self, consumed: str | None) -> dict[str, str]:
        """How far a query that read as far as `consumed` is behind, by name.

        Source: `KafkaMicroBatchStream.metrics` of Spark.
        """

    def close(self) -> None: ...

@final
class Fetched:
    """What one answer says of a stretch of a queue.

    Attributes:
        queue: The queue.
        epoch: Number of the assignment or seek that it belongs to.
        status: FOUND, NO_NEW_MSG, NO_MATCHED_MSG; OFFSET_ILLEGAL: the queue does not have the offset, and nothing comes
            before a seek; FAILED: the broker refused, did not answer in time or sent nonsense, and is asked again.
        begin_offset: The queue offset that was asked for: where the answer before ended.
        next_begin_offset: The queue offset to go on at.
        min_offset: First offset of the queue.
        max_offset: The offset behind its last.
        offsets: Queue offsets of the first and the last message that the broker let through; None where there are none.
        last_store_timestamp: Store time of the last of them, in milliseconds since 1970; None where there are none.
        size: Bytes of the records.
        elapsed: From the request to its answer, in seconds; 0 where it had no messages.
        is_end: Whether all before the assignment's end was handed out.
        suggested_broker_id: Id of the broker to pull from next.
        code: The broker's response code; -1 where none came.
        remark: What the broker, or who failed, says.
        body: The records.
        messages: The messages that have one of the assignment's tags.

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
        """Messages that the broker let through."""
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
        """The same messages, which show another topic: one without its namespace."""

    def changed(self) -> list[MessageView]:
        """The messages whose stored body is not what its CRC is of, whatever their tags; one look at all bodies.

        Source: `MessageDecoder.decode` with `checkCRC`, which Java's consumers do not ask for.
        """

@final
class PullerEvent:
    """What happened to a connection of a puller: it is there (again), or was lost and is tried again."""

    @property
    def address(self) -> str: ...
    @property
    def is_connected(self) -> bool: ...
    @property
    def reason(self) -> str: ...

@final
class FlowControl:
    """Why a queue is asked for no more for now; handed out the first time, and of each thousand times once.

    Attributes:
        queue: The queue.
        messages: Its messages that are in flight, ready or in hand.
        size: Bytes of them.
        span: Offsets from its first message that is not done to the last one that came.
        times: How often that happened, to any queue.

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
    """Pulls many queues, over one connection to each broker, with many pulls in flight: every consumer stands on it.

    The messages of a queue are handed out in order, none twice, none left out, whatever becomes of the connections. It
    tries to connect for ever, with pauses that grow; `take` tells. Each broker has a thread.

    What is in flight, ready or in hand is counted here. Of a queue without a filter no more than its threshold and one
    answer is ever there. Once a threshold is reached, nothing is asked for until half of the messages are gone.

    Args:
        consumer_group: The group in whose name it is pulled; it need not be known to the broker.
        depth: Pulls of a broker without an answer, beside one for each queue whose end is reached.
        batch: Messages that a pull asks for; a broker gives 32 or 256 KiB at most, as it is shipped.
        suspend: How long the broker shall hold a pull at a queue's end, in seconds; 0: not at all.
        timeout: How long to wait for an answer, in seconds.
        connect_timeout: How long to wait for a connection, in seconds.
        retry: How long to leave a queue alone that the broker refuses, in seconds.
        interval: How long to leave a queue alone behind an answer with messages, in seconds; unless 0, a queue has one
            pull in flight.
        of_queue: Messages and bytes of a queue at which it is asked for no more.
        in_all: The same of all queues together.
        max_span: Offsets between the first message of a queue that is not done and the last one that came, beyond which
            it is asked for no more.
        sys_flag: Of `PullSysFlag`; what makes the broker hold the pull, or store an offset, is added where it applies.
        commits_offsets: Whether pulls tell masters where the group goes on.
        counts_until_done: Whether what was taken counts until `done`; otherwise it is done when it is taken.
        tls: TLS; without, connections are plain.
        ext_fields: Header fields of every pull.
        sign: Gets code, header fields and body of a pull, gives further header fields; called in the broker's thread.
        max_body_bytes: Bytes of a decompressed body at most.
        verify_crc: Whether messages compare their bodies with their CRC.
        burst: Free places of `depth` that are filled together.
        gather: Bytes that `take` waits for, and for how long once something is there, in seconds.
        on_ready: Called when something can be taken that could not before, and at the end, by any thread, maybe in
            vain; must not wait, nor call the puller.

    Raises:
        ArgumentError: TLS that says nothing of whom to trust.

    Source: `PullMessageService`, `DefaultMQPushConsumerImpl.pullMessage`, `DefaultLitePullConsumerImpl.PullTaskImpl`,
    which have one pull of a queue in flight.
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
        """Pulls a queue from `offset` on, before `end` or for ever, and drops what was there of it. Gives the epoch.

        With `paused` nothing is asked before `resume`. `commit_offset` is where the group goes on, as far as is known.

        Raises:
            ChannelClosedError: The puller is closed.
        """

    def remove(self, queue: MessageQueue) -> bool:
        """Pulls a queue no more, and throws away what is there of it. False if it was not pulled."""

    def seek(self, queue: MessageQueue, offset: int) -> int | None:
        """Goes on at another offset; what was there is thrown away. Gives the new epoch, None if it is not pulled."""

    def move_to(self, queue: MessageQueue, address: str, *, is_slave: bool = False) -> bool:
        """Pulls a queue from another broker; what is there of it stays. False if it is not pulled.

        Raises:
            ChannelClosedError: The puller is closed.
        """

    def pause(self, queue: MessageQueue) -> bool:
        """Asks no more for a queue; what is there can be taken. False if it is not pulled."""

    def resume(self, queue: MessageQueue) -> bool:
        """Asks for a queue again. False if it is not pulled."""

    def subscribe(
        self,
        topic: str,
        *,
        expression: str,
        expression_type: str = "TAG",
        sub_version: int = 0,
        tags: frozenset[str] | set[str] | None = None,
    ) -> None:
        """Wants other messages of a topic's queues from now on; what is there stays."""

    def set_threshold(self, messages: int, size: int) -> None:
        """Holds another `of_queue` from now on."""

    def done(self, epoch: int, messages: int, size: int, position: int) -> None:
        """Messages that were taken count no more.

        Args:
            epoch: That of the `Fetched`; nothing happens where the queue has another one by now.
            messages: How many.
            size: Bytes of them.
            position: The first offset that is not done, or the one behind the last.
        """

    def give_back(self, fetched: Fetched) -> None:
        """Has an answer taken once more, before all others; not where its queue went on elsewhere, or is gone."""

    def take(self, timeout: float, *, max_items: int = 64) -> list[Fetched | PullerEvent | FlowControl]:
        """What came; waits for the first of it, in seconds at most.

        Raises:
            ChannelClosedError: The puller is closed.
            ForkError: It was opened by the process that this is a fork of.
            KeyboardInterrupt: Ctrl-C, within 200 ms.
        """

    @property
    def held(self) -> tuple[int, int]:
        """Messages and bytes that came and nobody took."""

    @property
    def in_hand(self) -> tuple[int, int]:
        """Messages and bytes that were taken and are not done."""

    @property
    def is_handled(self) -> bool:
        """Whether no pull is in flight, nothing can be taken, and a thread waits in `take`: all that came is done."""

    @property
    def full_times(self) -> int:
        """How often a queue was not asked for because too much was there."""

    def close(self) -> None:
        """Ends the threads and the connections; calling it twice does no harm."""

def messages_to_arrow(
    messages: Sequence[MessageView], columns: list[str] | None = None, *, microseconds: bool = False
) -> Batch:
    """One Arrow batch of messages, in their order, with the row's columns as the messages show them.

    Raises:
        UnknownColumnError: A column that the row does not have.
        ArgumentError: More than 256 MiB.
    """

def fetched_to_arrow(
    fetched: Sequence[Fetched],
    columns: list[str] | None = None,
    *,
    microseconds: bool = False,
    max_body_bytes: int = ...,
) -> list[Batch]:
    """Arrow batches of what a puller handed out, in its order, without an object for each message.

    Raises:
        UnknownColumnError: A column that the row does not have.
    """
