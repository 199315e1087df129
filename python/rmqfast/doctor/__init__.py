"""Finds misconfigurations and faults of clusters, stores and machines, with evidence and next steps."""

from rmqfast.doctor.cluster import examine_cluster
from rmqfast.doctor.finding import Diagnosis, Finding, Level
from rmqfast.doctor.store import examine_store

__all__ = ["Diagnosis", "Finding", "Level", "examine_cluster", "examine_store"]
