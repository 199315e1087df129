"""Metrics of any RocketMQ cluster for Prometheus, asked of its brokers from outside."""

from rmqfast.exporter.exporter import Exporter

__all__ = ["Exporter"]
