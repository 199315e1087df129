"""Metrics: families of samples, and their text for Prometheus. `server.py` gives the text out."""

from rmqfast.metrics.family import Family, Histogram, Kind, Sample
from rmqfast.metrics.text import write_text

__all__ = ["Family", "Histogram", "Kind", "Sample", "write_text"]
