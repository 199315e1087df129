"""Live copies of a cluster's brokers: their logs, which come over the HA port, with queues, index, configuration.

Source: `HAClient`, `SlaveSynchronize`.
"""

from rmqfast.mirror.mirror import Mirror
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.status import MirrorState, MirrorStatus

__all__ = ["Mirror", "MirrorOptions", "MirrorState", "MirrorStatus"]
