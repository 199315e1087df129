"""The command lines of mqadmin, in an order that makes each of them print something."""

from __future__ import annotations

MESSAGES = [
    {
        "topic": "adm",
        "body": f"body {n}",
        "queue": n % 4,
        "tags": f"Tag{'AB'[n // 4 % 2]}",
        "keys": f"k{n} all",
        "flag": n,
    }
    for n in range(12)
]
ALL = "-c DefaultCluster"
# What is done, in order. A line that begins with '!' is no command: something else happens, see Play.
SEQUENCE = f"""
updateTopic {ALL} -t adm -r 4 -w 4
updateTopic -b {{broker}} -t adm_b -r 2 -w 3 -p 4 -u true -s true
updateTopic {ALL} -t adm_order -r 2 -w 2 -o true
updateTopic {ALL} -t adm_perm -r 3 -w 3
updateTopic {ALL} -t bad.name -r 1 -w 1
topicRoute -t adm_b
topicRoute -t adm_order
updateTopicPerm {ALL} -t adm_perm -p 4
updateTopicPerm -b {{broker}} -t adm_perm -p 2
updateTopicPerm -b {{broker}} -t adm_perm -p 2
updateTopicPerm {ALL} -t adm_absent -p 6
topicRoute -t adm_perm
updateSubGroup {ALL} -g adm_new -s true -m false -d true -q 2 -r 5 -i 0 -w 1 -a false
updateSubGroup -b {{broker}} -g adm_other
!produce
!consume
!live
!sample
statsAll
statsAll -a
statsAll -t adm
!meet
topicList
topicList -c
topicRoute -t adm
topicRoute -t adm -l
topicRoute -t adm_absent
topicStatus -t adm
topicStatus -t adm_absent
topicClusterList -t adm
clusterList
clusterList -m
brokerStatus -b {{broker}}
brokerStatus {ALL}
getBrokerConfig -b {{broker}}
getBrokerConfig {ALL}
updateBrokerConfig -b {{broker}} -k maxTransferCountOnMessageInMemory -v 40
updateBrokerConfig {ALL} -k maxTransferCountOnMessageInDisk -v 12
updateBrokerConfig -b {{broker}} -k noSuchProperty -v 1
getBrokerConfig -b {{broker}}
consumerProgress
consumerProgress -g adm_live
consumerProgress -g adm_live -s true
consumerProgress -g adm_offline
consumerProgress -g adm_nobody
consumerConnection -g adm_live
consumerConnection -g adm_live -b {{broker}}
consumerConnection -g adm_offline
consumerStatus -g adm_live
consumerStatus -g adm_live -i {{client}}
consumerStatus -g adm_offline
producerConnection -g adm_producer -t adm
producerConnection -g adm_nobody -t adm
producer -b {{broker}}
queryMsgById -i {{offset_id}}
queryMsgById -i {{offset_id}} -g adm_live -d {{client}}
queryMsgById -i {{offset_id_absent}}
queryMsgByKey -t adm -k k1
queryMsgByKey -t adm -k all
queryMsgByKey -t adm -k nothing
queryMsgByUniqueKey -t adm -i {{unique_key}}
queryMsgByUniqueKey -t adm -i {{unique_key}} -a
queryMsgByUniqueKey -t adm -i {{unique_key}} -g adm_live -d {{client}}
queryMsgByUniqueKey -t adm -i {{unique_key_absent}}
queryMsgByOffset -t adm -b broker-a -i 1 -o 1
queryMsgByOffset -t adm -b broker-a -i 1 -o 100
printMsg -t OFFSET_MOVED_EVENT -d true
printMsg -t adm -d true
printMsg -t adm -s TagA
printMsgByQueue -t adm -a broker-a -i 0 -p true -d true -f true
printMsgByQueue -t adm -a broker-a -i 3 -p true -s TagB
sendMessage -t adm_perm -p hello -k key -c tag
sendMessage -t adm_order -p hello -k key -c tag
sendMessage -t adm_order -b broker-a -i 1 -p there
consumeMessage -t adm -b broker-a -i 0 -o 0 -c 2
consumeMessage -t adm_order
consumeMessage -t adm -b broker-a -i 2 -s 0 -e 4102444800000
allocateMQ -t adm -i 10.0.0.1,10.0.0.2,10.0.0.3
checkMsgSendRT -t adm_order -a 4 -s 64
brokerConsumeStats -b {{broker}}
brokerConsumeStats -b {{broker}} -l 1
brokerConsumeStats -b {{broker}} -o true
resetOffsetByTime -g adm_offline -t adm -s 0 -f true
consumerProgress -g adm_offline
skipAccumulatedMessage -g adm_offline -t adm
consumerProgress -g adm_offline
resetOffsetByTime -g adm_live -t adm -s now
resetOffsetByTime -g adm_nobody -t adm -s 0
skipAccumulatedMessage -g adm_live -t adm
cloneGroupOffset -s adm_offline -d adm_new -t adm -o true
cloneGroupOffset -s adm_nobody -d adm_new -t adm
consumerProgress -g adm_new
wipeWritePerm -b broker-a
topicRoute -t adm
addWritePerm -b broker-a
topicRoute -t adm
wipeWritePerm -b broker-z
cleanExpiredCQ -b {{broker}}
cleanExpiredCQ {ALL}
cleanUnusedTopic -b {{broker}}
cleanUnusedTopic {ALL}
deleteSubGroup {ALL} -g adm_new -r true
deleteSubGroup -b {{broker}} -g adm_other
deleteSubGroup {ALL} -g adm_absent
deleteTopic {ALL} -t adm_b
deleteTopic {ALL} -t adm_absent
topicRoute -t adm_b
topicList
!end
"""
