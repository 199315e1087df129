"""Topics of a live cluster as scans and tables."""

from rmqfast.cluster.message_cluster import ClusterArguments, ClusterScanArguments, MessageCluster, open_cluster
from rmqfast.cluster.topic_options import TopicOffsets, Via

__all__ = ["ClusterArguments", "ClusterScanArguments", "MessageCluster", "TopicOffsets", "Via", "open_cluster"]
