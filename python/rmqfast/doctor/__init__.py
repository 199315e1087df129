"""Finds misconfigurations and faults of clusters, stores and machines, once or again and again."""

from rmqfast.doctor.alarm import Alarm, AlarmChange
from rmqfast.doctor.alarm_rules import AlarmRules
from rmqfast.doctor.cluster import examine_cluster
from rmqfast.doctor.finding import Diagnosis, Finding, Level
from rmqfast.doctor.monitor import AlarmMonitor
from rmqfast.doctor.store import examine_store

__all__ = [
    "Alarm",
    "AlarmChange",
    "AlarmMonitor",
    "AlarmRules",
    "Diagnosis",
    "Finding",
    "Level",
    "examine_cluster",
    "examine_store",
]
