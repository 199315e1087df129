"""The stores of several brokers as one: their topics, scans and tables.

Source: RocketMQ's `TopicPublishInfo`, in which a topic has queues at several brokers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from rmqfast import _native
from rmqfast.arguments import Number, Time, suggests_names, whole
from rmqfast.errors import ArgumentError, ArgumentTypeError
from rmqfast.html import facts
from rmqfast.paths import exists, local_path
from rmqfast.pickling import not_picklable
from rmqfast.store.opening import StorePath, open_store
from rmqfast.store.reader import MessageStore
from rmqfast.store.request import DecodeArguments, ReadArguments, ScanArguments, ScanRequest, between, check_names
from rmqfast.store.scan import Scan
from rmqfast.store.scan_source import OnDamage, StoreIo, Way
from rmqfast.store.stores_source import StoreShare, StoresSource

if TYPE_CHECKING:
    from rmqfast.store.dataset import ScanDataset

#: The stores to open: their paths by broker, the directory that has them, or a pattern of paths.
StorePaths = StorePath | Mapping[str, StorePath]
#: One queue offset, one for each queue id, or those of queues for each broker.
BrokerOffsets = Number | Mapping[int, Number] | Mapping[str, Mapping[int, Number]]


class StoresReadArguments(ReadArguments, total=False):
    """Keyword arguments of reads of several stores.

    Attributes:
        keys_prefix: Only messages with a key or UNIQ_KEY that begins with this.
        start_offset: First queue offset: one number, a number per queue of each broker, or `{"broker-a": {0: 100}}`;
            "*" in place of a name stands for all other brokers.
        end_offset: Queue offset before which to stop, in the same forms.
    """

    keys_prefix: str | None
    start_offset: BrokerOffsets | None
    end_offset: BrokerOffsets | None


class StoresArguments(StoresReadArguments, DecodeArguments, total=False):
    """Keyword arguments of `MessageStores.scan`, with those of `rmqfast.store.DecodeArguments`.

    Attributes:
        batch_rows: Maximum rows of a batch.
        batch_bytes: Approximate bytes of a batch.
    """

    batch_rows: int
    batch_bytes: int


@suggests_names
def open_stores(
    stores: StorePaths,
    *,
    commit_log_dirs: Mapping[str, Sequence[StorePath]] | None = None,
    io: StoreIo = "pread",
) -> MessageStores:
    """Opens the stores of several brokers for reading, as one.

    Args:
        stores: Directories of stores by broker name; or one directory that contains them, such as that of a mirror; or
            a pattern with `*`, `?` or `[...]`, such as `/data/*/store`. A store is named after its directory, or after
            the last part of the path that the pattern leaves open. Of several copies of a mirror, the newest counts.
        commit_log_dirs: For each broker whose commit log is not `commitlog` below its store: directories of the log.
        io: See `open_store`.

    Raises:
        StoreNotFoundError: A directory does not exist.
        UnsupportedStoreError: There is no store, or one that `open_store` refuses.
        ArgumentError: The path is one store, or two stores have one name.
        StoreIOError: A file or directory cannot be read.

    Example:
        >>> import rmqfast
        >>> golden = getfixture("golden_store")
        >>> paths = {"broker-a": golden("basic-4.9.4"), "broker-b": golden("offsets-4.9.4")}
        >>> with rmqfast.open_stores(paths) as stores:
        ...     rows = stores.scan("fx_plain", columns=["broker_name"]).to_arrow()
        >>> rows.column("broker_name").value_counts().to_pylist()
        [{'values': 'broker-a', 'counts': 120}, {'values': 'broker-b', 'counts': 72}]
    """
    paths = paths_by_broker(stores)
    logs = dict(commit_log_dirs or {})
    for name in logs.keys() - paths.keys():
        raise ArgumentError(f"commit_log_dirs: expected names of {', '.join(paths)}, got {name!r}")
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(open_store(path, broker_name=name, commit_log_dirs=logs.get(name, ()), io=io))
            for name, path in paths.items()
        }
        stack.pop_all()
    return MessageStores(opened)


def open_one_or_several(
    path: StorePath, *, commit_log_dirs: Sequence[StorePath] = (), io: StoreIo = "pread"
) -> MessageStore | MessageStores:
    """Opens the store at a path; or, as `open_stores` does, those in the directory or of the pattern.

    Raises:
        StoreError: See `open_store` and `open_stores`.
        ArgumentError: `commit_log_dirs` are given for several stores.
    """
    stores = _native.find_broker_stores(local_path(path, "path"))
    if stores is None:
        return open_store(path, commit_log_dirs=commit_log_dirs, io=io)
    if commit_log_dirs:
        got = ", ".join(os.fspath(each) for each in commit_log_dirs)
        raise ArgumentError(f"commit_log_dirs: expected none with several stores, each has commitlog/, got {got}")
    return open_stores(stores, io=io)


def paths_by_broker(stores: StorePaths) -> dict[str, Path]:
    """Returns the paths of stores by the name of their broker, in the order of the names. See `open_stores`.

    Raises:
        UnsupportedStoreError: There is no store.
        ArgumentError: The path is one store, or two stores have one name.
    """
    if isinstance(stores, Mapping):
        if not stores:
            raise ArgumentError("stores: expected paths by broker name, got none")
        paths = {}
        for name, path in sorted(stores.items()):
            if not name:
                raise ArgumentError(f"stores: expected the name of a broker, got {name!r}")
            paths[name] = local_path(path, f"stores: {name}")
        return paths
    path = local_path(stores, "stores")
    found = _native.find_broker_stores(path)
    if found is not None:
        return found
    if exists(path / "commitlog"):
        raise ArgumentError(f"stores: expected a directory that contains stores, got the store {path}: use open_store")
    # raises the error of a path that is missing, or no store
    open_store(path).close()
    raise ArgumentError(f"stores: expected a directory with stores, each with commitlog/ in it, got {path}")


@not_picklable("open the stores where they are used, by rmqfast.open_stores(paths)")
class MessageStores:
    """Snapshots of the stores of several brokers, opened by `open_stores`. Their topics are merged.

    Example:
        >>> import rmqfast
        >>> golden = getfixture("golden_store")
        >>> paths = {"broker-a": golden("basic-4.9.4"), "broker-b": golden("offsets-4.9.4")}
        >>> stores = rmqfast.open_stores(paths)
        >>> stores.topics()["fx_plain"]["broker-b"]
        {0: (0, 18), 1: (0, 18), 2: (0, 18), 3: (0, 18)}
        >>> stores.scan("fx_plain").count()
        192
    """

    def __init__(self, stores: Mapping[str, MessageStore]) -> None:
        self.stores: Mapping[str, MessageStore] = MappingProxyType(dict(stores))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"MessageStores({ {name: str(store.path) for name, store in self.stores.items()} })"

    def _repr_html_(self) -> str:
        return facts("MessageStores", {name: str(store.path) for name, store in self.stores.items()})

    def close(self) -> None:
        """Closes the stores with their scans. A second call does nothing."""
        for store in self.stores.values():
            store.close()

    def refresh(self) -> None:
        """Moves the snapshots to the current content of the stores. Scans that exist keep theirs.

        Raises:
            StoreError: A store is closed or cannot be read.
        """
        for store in self.stores.values():
            store.refresh()

    def topics(self) -> dict[str, dict[str, dict[int, tuple[int, int]]]]:
        """Returns the queues of all topics: `{topic: {broker_name: {queue_id: (min_offset, max_offset)}}}`.

        Raises:
            StoreError: A store cannot be read.
        """
        topics: dict[str, dict[str, dict[int, tuple[int, int]]]] = {}
        for name, store in self.stores.items():
            for topic, queues in store.topics().items():
                topics.setdefault(topic, {})[name] = queues
        return topics

    def scan(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        threads: Number = 1,
        way: Way | None = None,
        on_damage: OnDamage = "warn",
        **arguments: Unpack[StoresArguments],
    ) -> Scan:
        """Streams messages of all stores as Arrow record batches, of one broker after the other.

        The column `broker_name` tells whose a message is, and so does each place of `Scan.damage`.

        Args:
            topic: One topic or several, which not every broker needs to have. Default: every record.
            threads: See `MessageStore.scan`; the threads read one store at a time.
            way: See `MessageStore.scan`.
            on_damage: See `MessageStore.scan`.
            arguments: Filters, columns and batch sizes: see `rmqfast.store.StoresArguments`.

        Raises:
            UnknownTopicError: No store has a topic.
            UnknownColumnError: A column does not exist.
            ExpressionError: `tags` or `sql` is invalid.
            ArgumentError: A value is out of range.

        Example:
            >>> import duckdb, rmqfast
            >>> golden = getfixture("golden_store")
            >>> stores = rmqfast.open_stores({"a": golden("basic-4.9.4"), "b": golden("offsets-4.9.4")})
            >>> messages = stores.scan("fx_plain").dataset()
            >>> duckdb.sql("select broker_name, count(*) from messages group by 1 order by 1").fetchall()
            [('a', 120), ('b', 72)]
        """
        check_names(arguments, StoresArguments)
        values: dict[str, Any] = dict(arguments)
        bounds = {name: offsets_by_broker(name, values, self.stores) for name in ("start_offset", "end_offset")}
        request = ScanRequest.of(topic, cast("ScanArguments", values), broker_name=None)
        shares = []
        for name, topics in self._having(request).items():
            store = self.stores[name]
            source = store._scan_source(threads, way, on_damage, arguments.get("as_of"))  # noqa: SLF001 - of this package
            own: dict[str, Any] = {each: of_broker[name] for each, of_broker in bounds.items() if name in of_broker}
            shares.append(StoreShare(name, source, own if request.among is None else own | {"among": topics}))
        return Scan(StoresSource(tuple(shares)), request)

    def table(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        threads: Number = 1,
        way: Way | None = None,
        on_damage: OnDamage = "warn",
        **arguments: Unpack[StoresArguments],
    ) -> ScanDataset:
        """Returns messages as a table for SQL and data frames: `scan` as a dataset, see `Scan.dataset`.

        A filter by `broker_name` reads only the stores of those brokers.

        Args:
            topic: See `scan`.
            threads: See `scan`.
            way: See `scan`.
            on_damage: See `scan`.
            arguments: See `scan`.

        Raises:
            UnknownTopicError: No store has a topic.
            MissingExtraError: pyarrow is not installed.
        """
        return self.scan(topic, threads=threads, way=way, on_damage=on_damage, **arguments).dataset()

    def diff(
        self, a: Time, b: Time, topic: str | Sequence[str] | None = None, **arguments: Unpack[StoresArguments]
    ) -> Scan:
        """Scans the messages that were stored after one time, up to another: those of `as_of=b` without `as_of=a`.

        Args:
            a: A store time, which does not belong to the range.
            b: A later store time, which does.
            topic: See `scan`.
            arguments: See `scan`.

        Raises:
            ArgumentError: `b` is before `a`, or a value is out of range.
            UnknownTopicError: No store has a topic.
        """
        start, end = between(a, b, arguments)
        own: StoresArguments = {**arguments, "start_time": start, "as_of": end}
        return self.scan(topic, **own)

    def _having(self, request: ScanRequest) -> dict[str, tuple[str, ...]]:
        """Returns the topics of a request that each store has, without stores that have none of them."""
        wanted = request.among if request.topic is None else (request.topic,)
        if wanted is None:
            return dict.fromkeys(self.stores, ())
        having = {name: tuple(filter(store.has_topic, wanted)) for name, store in self.stores.items()}
        known = {topic for topics in having.values() for topic in topics}
        for topic in wanted:
            if topic not in known:
                # raises the error of an unknown topic, with similar names
                next(iter(self.stores.values())).scan(topic)
        return {name: topics for name, topics in having.items() if topics or not wanted}


def offsets_by_broker(
    name: str, values: dict[str, Any], brokers: Mapping[str, object]
) -> Mapping[str, Mapping[int, Number]]:
    """Takes offsets by broker out of arguments. Returns those of each broker that has some.

    Raises:
        ArgumentError: A broker is not among `brokers`.
        ArgumentTypeError: A broker has something else than offsets by queue.
    """
    given = values.get(name)
    # a number, or a mapping by queue, is the same for all brokers
    if not isinstance(given, Mapping) or not given or any(whole(key) is not None for key in given):
        return {}
    values[name] = None
    for broker, offsets in given.items():
        if broker != "*" and broker not in brokers:
            raise ArgumentError(f"{name}: expected names of {', '.join(brokers)}, got {broker!r}")
        if not isinstance(offsets, Mapping):
            form = f"offsets of queues by broker, as {{'{broker}': {{0: 100}}}}"
            raise ArgumentTypeError(f"{name}: expected {form}, got {given!r}")
    others = given.get("*")
    return {broker: given.get(broker, others) for broker in brokers if broker in given or others is not None}
