"""The keys of `broker.conf`: their types, RocketMQ's defaults, and when changes take effect.

Source: RocketMQ's `BrokerConfig`, `NettyServerConfig`, `NettyClientConfig`, `MessageStoreConfig`.
"""

from __future__ import annotations

import os
import re
import socket
from enum import Enum
from typing import NamedTuple

from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.system import home_directory

_HOST_NAME = socket.gethostname() or "DEFAULT_BROKER"
_HOME = home_directory()
#: Empty for an account without a home directory; opening the store reports the missing path.
_STORE = "" if _HOME is None else str(_HOME / "store")


class Effect(Enum):
    START = "takes effect when the broker starts"
    LIVE = "takes effect at once, also when it is changed while the broker runs"


class Kind(Enum):
    TEXT = "a text"
    PATH = "a path of this machine"
    INT = "a whole number of 32 bits"
    LONG = "a whole number of 64 bits"
    FLAG = "true or false"
    ROLE = "ASYNC_MASTER or SYNC_MASTER or SLAVE"
    FLUSH = "ASYNC_FLUSH or SYNC_FLUSH"
    ACL_MODE = "java or strict"
    RATIO = "a ratio of 0.01 to 1"
    PERMISSION = "three octal digits, 600 to 666"


class ConfigKey(NamedTuple):
    """A key of `broker.conf`. `default` is None if the key has no default."""

    name: str
    kind: Kind
    default: str | None
    effect: Effect

    def check(self, value: str) -> str:
        """Returns the value without blanks around it. Raises `ArgumentError` if it has the wrong type."""
        text = value.strip()
        if self.kind is Kind.PATH:
            return str(local_path(text, self.name))
        if not _fits(self.kind, text):
            raise ArgumentError(f"{self.name}: expected {self.kind.value}, got {text[:40]!r}")
        return text.lower() if self.kind is Kind.FLAG else text


def _fits(kind: Kind, text: str) -> bool:
    if kind in _BITS:
        digits = text.removeprefix("-")
        limit = 1 << (_BITS[kind] - 1)
        # `isdigit` accepts digits of other scripts, so check for ASCII, too.
        return digits.isascii() and digits.isdigit() and len(digits) < _LONGEST and -limit <= int(text) < limit
    if kind is Kind.RATIO:
        return re.fullmatch(r"0?\.\d{1,2}|1(\.0+)?", text, re.ASCII) is not None and float(text) > 0
    if kind is Kind.PERMISSION:
        return re.fullmatch("6[0246]{2}", text) is not None
    return kind is Kind.TEXT or (text.lower() if kind is Kind.FLAG else text) in kind.value.split(" or ")


_BITS = {Kind.INT: 32, Kind.LONG: 64}
#: A longer string is no 64-bit number, and `int` refuses very long strings with an error of its own.
_LONGEST = 20
START, LIVE = Effect.START, Effect.LIVE
TEXT, PATH, INT, LONG, FLAG = Kind.TEXT, Kind.PATH, Kind.INT, Kind.LONG, Kind.FLAG
ROLE, FLUSH, ACL_MODE = Kind.ROLE, Kind.FLUSH, Kind.ACL_MODE
RATIO, PERMISSION = Kind.RATIO, Kind.PERMISSION

_TABLE = (
    # BrokerConfig
    ConfigKey("rocketmqHome", TEXT, os.environ.get("ROCKETMQ_HOME"), START),
    ConfigKey("namesrvAddr", TEXT, None, START),
    ConfigKey("brokerIP1", TEXT, "127.0.0.1", START),
    ConfigKey("brokerIP2", TEXT, "127.0.0.1", START),
    ConfigKey("brokerName", TEXT, _HOST_NAME, START),
    ConfigKey("brokerClusterName", TEXT, "DefaultCluster", START),
    ConfigKey("brokerId", LONG, "0", START),
    ConfigKey("brokerPermission", INT, "6", LIVE),
    ConfigKey("defaultTopicQueueNums", INT, "8", START),
    ConfigKey("autoCreateTopicEnable", FLAG, "true", LIVE),
    ConfigKey("autoCreateSubscriptionGroup", FLAG, "true", LIVE),
    ConfigKey("msgTraceTopicName", TEXT, "RMQ_SYS_TRACE_TOPIC", START),
    ConfigKey("traceTopicEnable", FLAG, "false", START),
    ConfigKey("flushConsumerOffsetInterval", INT, "5000", LIVE),
    ConfigKey("rejectTransactionMessage", FLAG, "false", LIVE),
    ConfigKey("longPollingEnable", FLAG, "true", LIVE),
    ConfigKey("shortPollingTimeMills", LONG, "1000", LIVE),
    ConfigKey("notifyConsumerIdsChangedEnable", FLAG, "true", LIVE),
    ConfigKey("regionId", TEXT, "DefaultRegion", START),
    ConfigKey("registerBrokerTimeoutMills", INT, "6000", START),
    ConfigKey("slaveReadEnable", FLAG, "false", LIVE),
    ConfigKey("brokerFastFailureEnable", FLAG, "true", START),
    ConfigKey("waitTimeMillsInHeartbeatQueue", LONG, "31000", START),
    ConfigKey("waitTimeMillsInTransactionQueue", LONG, "3000", START),
    ConfigKey("startAcceptSendRequestTimeStamp", LONG, "0", LIVE),
    ConfigKey("traceOn", FLAG, "true", START),
    ConfigKey("enablePropertyFilter", FLAG, "false", LIVE),
    ConfigKey("registerNameServerPeriod", INT, "30000", LIVE),
    ConfigKey("transactionTimeOut", LONG, "6000", LIVE),
    ConfigKey("transactionCheckMax", INT, "15", LIVE),
    ConfigKey("transactionCheckInterval", LONG, "60000", LIVE),
    ConfigKey("aclEnable", FLAG, "false", START),
    ConfigKey("storeReplyMessageEnable", FLAG, "true", START),
    ConfigKey("autoDeleteUnusedStats", FLAG, "false", LIVE),
    # NettyServerConfig
    ConfigKey("listenPort", INT, "10911", START),
    ConfigKey("serverChannelMaxIdleTimeSeconds", INT, "120", START),
    # NettyClientConfig
    ConfigKey("useTLS", FLAG, "false", START),
    # MessageStoreConfig
    ConfigKey("storePathRootDir", PATH, _STORE, START),
    ConfigKey("mappedFileSizeCommitLog", INT, "1073741824", START),
    ConfigKey("mappedFileSizeConsumeQueue", INT, "6000000", START),
    ConfigKey("deleteWhen", TEXT, "04", START),
    ConfigKey("diskMaxUsedSpaceRatio", INT, "75", START),
    ConfigKey("fileReservedTime", INT, "72", START),
    ConfigKey("maxMessageSize", INT, "4194304", START),
    ConfigKey("maxTransferBytesOnMessageInMemory", INT, "262144", LIVE),
    ConfigKey("maxTransferCountOnMessageInMemory", INT, "32", LIVE),
    ConfigKey("maxTransferBytesOnMessageInDisk", INT, "65536", LIVE),
    ConfigKey("maxTransferCountOnMessageInDisk", INT, "8", LIVE),
    ConfigKey("accessMessageInMemoryMaxRatio", INT, "40", START),
    ConfigKey("maxHashSlotNum", INT, "5000000", START),
    ConfigKey("maxIndexNum", INT, "20000000", START),
    ConfigKey("maxMsgsNumBatch", INT, "64", LIVE),
    ConfigKey("haListenPort", INT, "10912", START),
    ConfigKey("haSendHeartbeatInterval", INT, "5000", START),
    ConfigKey("haHousekeepingInterval", INT, "20000", START),
    ConfigKey("haTransferBatchSize", INT, "32768", START),
    ConfigKey("haSlaveFallbehindMax", INT, "268435456", START),
    ConfigKey("brokerRole", ROLE, "ASYNC_MASTER", START),
    ConfigKey("flushDiskType", FLUSH, "ASYNC_FLUSH", START),
    ConfigKey("syncFlushTimeout", INT, "5000", START),
    ConfigKey("slaveTimeout", INT, "3000", START),
    ConfigKey("messageDelayLevel", TEXT, "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", START),
    ConfigKey("flushDelayOffsetInterval", LONG, "10000", LIVE),
    ConfigKey("cleanFileForciblyEnable", FLAG, "true", START),
    ConfigKey("offsetCheckInSlave", FLAG, "false", LIVE),
    ConfigKey("osPageCacheBusyTimeOutMills", LONG, "1000", START),
    ConfigKey("defaultQueryMaxNum", INT, "32", LIVE),
    ConfigKey("enableScheduleMessageStats", FLAG, "true", START),
    ConfigKey("enableLmq", FLAG, "false", START),
    ConfigKey("enableMultiDispatch", FLAG, "false", START),
    ConfigKey("maxLmqConsumeQueueNum", INT, "20000", START),
    # properties of the JVM, there
    ConfigKey("rocketmq.broker.diskSpaceWarningLevelRatio", RATIO, None, START),
    ConfigKey("rocketmq.broker.diskSpaceCleanForciblyRatio", RATIO, None, START),
    # of 5.x
    ConfigKey("bindAddress", TEXT, "127.0.0.1", START),
)
#: Keys that no version of RocketMQ has.
_OWN_TABLE = (
    ConfigKey("aclMode", ACL_MODE, None, START),
    ConfigKey("nameServerAclFile", TEXT, None, START),
    ConfigKey("storeFilePermission", PERMISSION, "600", START),
    ConfigKey("insecureBind", FLAG, "false", START),
    ConfigKey("haSlaveAddresses", TEXT, None, START),
    ConfigKey("haUseTLS", FLAG, "false", START),
    ConfigKey("maxTopicCount", INT, "1000000", LIVE),
    ConfigKey("maxGroupCount", INT, "1000000", LIVE),
    ConfigKey("checkCRCOnDelivery", FLAG, "false", LIVE),
    ConfigKey("maxConsumerOffsetCount", INT, "1000000", START),
    ConfigKey("pullLedgerEnable", FLAG, "true", START),
    ConfigKey("pullLedgerHours", INT, "720", START),
    ConfigKey("pullLedgerRows", INT, "1000000", START),
    ConfigKey("metricsPort", INT, None, START),
    ConfigKey("metricsAddress", TEXT, "127.0.0.1", START),
    ConfigKey("newNamesBurst", INT, "10000", START),
    ConfigKey("newNamesPerSecond", INT, "100", START),
)

_UNUSED = """
clusterTopicEnable brokerTopicEnable messageStorePlugIn sendMessageThreadPoolNums putMessageFutureThreadPoolNums
pullMessageThreadPoolNums processReplyMessageThreadPoolNums queryMessageThreadPoolNums adminBrokerThreadPoolNums
clientManageThreadPoolNums consumerManageThreadPoolNums heartbeatThreadPoolNums endTransactionThreadPoolNums
flushConsumerOffsetHistoryInterval fetchNamesrvAddrByAddressServer sendThreadPoolQueueCapacity
putThreadPoolQueueCapacity pullThreadPoolQueueCapacity replyThreadPoolQueueCapacity queryThreadPoolQueueCapacity
clientManagerThreadPoolQueueCapacity consumerManagerThreadPoolQueueCapacity heartbeatThreadPoolQueueCapacity
endTransactionPoolQueueCapacity filterServerNums highSpeedMode commercialEnable commercialTimerCount
commercialTransCount commercialBigCount commercialBaseCount transferMsgByHeap maxDelayTime
disableConsumeIfConsumerReadSlowly consumerFallbehindThreshold waitTimeMillsInSendQueue waitTimeMillsInPullQueue
enableCalcFilterBitMap expectConsumerNumUseFilter maxErrorRateOfBloomFilter filterDataCleanTimeSpan filterSupportRetry
compressedRegister forceRegister enableDetailStat isolateLogEnable serverWorkerThreads serverCallbackExecutorThreads
serverSelectorThreads serverOnewaySemaphoreValue serverAsyncSemaphoreValue serverSocketSndBufSize
serverSocketRcvBufSize writeBufferHighWaterMark writeBufferLowWaterMark serverSocketBacklog
serverPooledByteBufAllocatorEnable useEpollNativeSelector clientWorkerThreads clientCallbackExecutorThreads
clientOnewaySemaphoreValue clientAsyncSemaphoreValue connectTimeoutMillis channelNotActiveInterval
clientChannelMaxIdleTimeSeconds clientSocketSndBufSize clientSocketRcvBufSize clientPooledByteBufAllocatorEnable
clientCloseSocketIfTimeout storePathCommitLog storePathDLedgerCommitLog readOnlyCommitLogStorePaths
enableConsumeQueueExt mappedFileSizeConsumeQueueExt bitMapLengthConsumeQueueExt flushIntervalCommitLog
commitIntervalCommitLog useReentrantLockWhenPutMessage flushCommitLogTimed flushIntervalConsumeQueue
cleanResourceInterval deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval destroyMapedFileIntervalForcibly
redeleteHangedFileInterval putMsgIndexHightWater checkCRCOnRecover flushCommitLogLeastPages commitCommitLogLeastPages
flushLeastPagesWhenWarmMapedFile flushConsumeQueueLeastPages flushCommitLogThoroughInterval
commitCommitLogThoroughInterval flushConsumeQueueThoroughInterval messageIndexEnable messageIndexSafe haMasterAddress
warmMapedFileEnable debugLockEnable duplicationEnable diskFallRecorded transientStorePoolEnable transientStorePoolSize
fastFailIfNoBufferInStorePool enableDLegerCommitLog dLegerGroup dLegerPeers dLegerSelfId preferredLeaderId
isEnableBatchPush enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit
scheduleAsyncDeliverMaxResendNum2Blocked
"""
#: Keys of RocketMQ 4.9.4 without effect here; any value is accepted, kept and shown.
UNUSED_KEYS = frozenset(_UNUSED.split())

#: Keys that RocketMQ reads from JVM properties only. As any key, they are shown where `broker.conf` sets them.
JVM_KEYS = frozenset(key.name for key in _TABLE if key.name.startswith("rocketmq."))

#: Keys that RocketMQ lacks.
OWN_KEYS = frozenset(key.name for key in _OWN_TABLE)

#: All keys by name, in the order of RocketMQ's classes.
CONFIG_KEYS = {key.name: key for key in (*_TABLE, *_OWN_TABLE)}
