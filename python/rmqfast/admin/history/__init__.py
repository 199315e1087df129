"""Histories of clusters whose brokers keep no ledger, sampled from outside, and what follows from them."""

from rmqfast.admin.history.watcher import HistoryWatcher

__all__ = ["HistoryWatcher"]
