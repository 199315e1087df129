"""The stores of several brokers as the source of one scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rmqfast import _native
from rmqfast.store.explanation import ScanExplanation, join_explanations
from rmqfast.store.request import ScanRequest
from rmqfast.store.scan_source import StoreSource


@dataclass(frozen=True)
class StoreShare:
    """The messages of one broker's store in a scan of several. `changes` are those of its request."""

    broker_name: str
    source: StoreSource
    changes: Mapping[str, Any]

    def request_of(self, request: ScanRequest) -> ScanRequest:
        return replace(request, broker_name=self.broker_name, **self.changes)

    def with_source(self, source: StoreSource) -> StoreShare:
        return replace(self, source=source)


@dataclass(frozen=True)
class StoresSource:
    """The messages of several stores, of one broker after the other. There is at least one share."""

    shares: tuple[StoreShare, ...]

    def start(self, request: ScanRequest, limit: int | None) -> _native.Scan:
        scans = [share.source.start(share.request_of(request), limit) for share in self.shares]
        return _native.Scan.chain(scans, limit)

    def count(self, request: ScanRequest) -> int | None:
        counts = [share.source.count(share.request_of(request)) for share in self.shares]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def explain(self, request: ScanRequest, limit: int | None) -> ScanExplanation:
        explanations = {
            share.broker_name: share.source.explain(share.request_of(request), None) for share in self.shares
        }
        return join_explanations(explanations, limit)

    def fix_messages(self, request: ScanRequest) -> StoresSource:
        fixed = [share.with_source(share.source.fix_messages(share.request_of(request))) for share in self.shares]
        return StoresSource(tuple(fixed))

    def parts(self, request: ScanRequest) -> list[StoresSource]:
        return [
            StoresSource((share.with_source(part),))
            for share in self.shares
            for part in share.source.parts(share.request_of(request))
        ]

    def narrow(self, request: ScanRequest, predicate: object) -> tuple[StoresSource, ScanRequest]:
        selection = _native.Selection(request, broker_names=[share.broker_name for share in self.shares])
        selection.take(_native.implied_filters(predicate))
        names = () if selection.is_empty else selection.broker_names or ()
        kept = tuple(share for share in self.shares if share.broker_name in names)
        # a source without pieces has no messages, but columns
        nothing = self.shares[0].with_source(replace(self.shares[0].source, pieces=()))
        return StoresSource(kept or (nothing,)), request.with_selection(selection)
