"""Topics of a live cluster as the source of an ingest. Its position is the next offset of each queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqfast._native import COLUMNS, SparkStream, TopicRead
from rmqfast.cluster import MessageCluster
from rmqfast.cluster.topic_options import errors_name_arguments, option_texts
from rmqfast.cluster.topic_source import TopicSource
from rmqfast.store import Scan, ScanRequest
from rmqfast.tables.offset_stream import OffsetStream
from rmqfast.tables.source import Step

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.message import Damage

#: Messages that a thread reads at once.
_PIECE_ROWS = 1 << 16


class ClusterTopics:
    """The messages of topics, queue by queue.

    Args:
        cluster: The cluster.
        topics: Names of topics; None for those of the pattern.
        pattern: A regular expression of topics; None for the named ones, or for all topics of users.
        request: Messages and columns to select.
        step_rows: Messages in one step.
        fails: Whether messages that no longer exist are an error.
    """

    def __init__(
        self,
        cluster: MessageCluster,
        topics: Sequence[str] | None,
        request: ScanRequest,
        *,
        pattern: str | None,
        step_rows: int,
        fails: bool,
    ) -> None:
        self._config, self._request = cluster.config, request
        self._options = cluster.read_options(topics, request, fails=fails)
        if pattern is not None:
            self._options["subscribePattern"] = pattern
        stream = self._options | option_texts({"maxOffsetsPerTrigger": step_rows, "maxRowsPerPartition": _PIECE_ROWS})
        with errors_name_arguments():
            read = TopicRead("topic stream", stream, COLUMNS, config=self._config)
        self.offsets: OffsetStream = OffsetStream(lambda warn: SparkStream.of_topic(read, warn=warn))

    @property
    def schema(self) -> pa.Schema:
        return self._scan(()).schema

    def step_between(self, start: str, end: str) -> Step:
        return Step(start, end, self.offsets.pieces(start, end), [])

    def scan(self, piece: bytes) -> Scan:
        return self._scan((piece,))

    def damage_behind(self, end: str) -> list[Damage]:
        del end
        # brokers answer with whole messages
        return []

    def _scan(self, pieces: tuple[bytes, ...]) -> Scan:
        return Scan(TopicSource(self._config, self._options, pieces), self._request)
