"""Topics of a live cluster as scans and tables."""

from rmqfast.cluster.message_cluster import ClusterArguments, MessageCluster, open_cluster
from rmqfast.cluster.topic_options import TopicOffsets, Via

__all__ = ["ClusterArguments", "MessageCluster", "TopicOffsets", "Via", "open_cluster"]
