"""The source of a scan of a cluster: planned ranges of queues, which are the same messages for each reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rmqfast._native import COLUMNS, TopicRead, implied_filters
from rmqfast._native import Scan as NativeScan
from rmqfast.client.instance import ClientConfig
from rmqfast.cluster.topic_explanation import explain_topics
from rmqfast.cluster.topic_options import errors_name_arguments
from rmqfast.errors import ArgumentError
from rmqfast.store import ScanExplanation, ScanRequest
from rmqfast.store.decode import is_decoded

#: A condition on one column: kind, column, values.
Filter = tuple[str, str, list[Any]]


@dataclass(frozen=True)
class TopicSource:
    """Messages of topics. `pieces` are those of a plan, whose offsets are fixed."""

    config: ClientConfig
    options: Mapping[str, str]
    pieces: tuple[bytes, ...] = ()
    filters: tuple[Filter, ...] = ()
    threads: int = 1
    #: For each broker the reason to pull although its log was asked for, as JSON.
    ways: str = "[]"

    @classmethod
    def plan(
        cls,
        config: ClientConfig,
        options: Mapping[str, str],
        *,
        filters: Sequence[Filter] = (),
        threads: int = 1,
    ) -> TopicSource:
        """Asks the cluster for its queues and their offsets, and returns them as a source.

        Raises:
            ArgumentError: A filter cannot be applied to offsets.
            RmqError: See `TopicRead.plan`.
        """
        with errors_name_arguments():
            read = TopicRead("topic batch", dict(options), COLUMNS, config=config)
            narrowed, is_taken = read.take(list(filters))
            if not all(is_taken):
                kind, column, values = filters[is_taken.index(False)]
                raise ArgumentError(f"{column}: expected a bound that the topics' queues have, got {kind} {values[0]}")
            pieces, ways = narrowed.plan_with_ways(logger="rmqfast.cluster")
        return cls(config, options, tuple(pieces), tuple(filters), threads, ways)

    def start(self, request: ScanRequest, limit: int | None) -> NativeScan:
        return self._read(request).scan(self.pieces, request, threads=self.threads, limit=limit)

    def count(self, request: ScanRequest) -> int | None:
        return None if request.keys_prefix is not None else self._read(request).count(self.pieces)

    def explain(self, request: ScanRequest, limit: int | None) -> ScanExplanation:
        pieces = self._read(request).explain(self.pieces, threads=self.threads)
        return explain_topics(pieces, self, request, count=self.count(request), limit=limit)

    def narrow(self, request: ScanRequest, predicate: object) -> tuple[TopicSource, ScanRequest]:
        # filters that a read does not apply are left to the engine
        return replace(self, filters=(*self.filters, *implied_filters(predicate))), request

    def fix_messages(self, _request: ScanRequest) -> TopicSource:
        return self

    def parts(self, _request: ScanRequest) -> list[TopicSource]:
        return [replace(self, pieces=(piece,), threads=1) for piece in self.pieces]

    def _read(self, request: ScanRequest) -> TopicRead:
        columns = COLUMNS if request.columns is None else [c for c in request.columns if not is_decoded(c)]
        return TopicRead.narrowed("topic batch", dict(self.options), columns, self.config, list(self.filters))
