package rmqlab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** A topic that lies at two brokers of a cluster: what goes where, who gets it, and what is known of it. */
final class TwoBrokerScenarios {
    private static final String[] BROKERS = {"broker-a", "broker-b"};

    /** Held for reading by all that send where they like; for writing by what takes a broker's right to write away. */
    private static final ReadWriteLock RIGHTS = new ReentrantReadWriteLock();

    static void add(Map<String, Scenario.Play> m) {
        m.put("two_known", holding(RIGHTS.readLock(), TwoBrokerScenarios::known));
        m.put("two_spread", holding(RIGHTS.readLock(), TwoBrokerScenarios::spread));
        m.put("two_shared", holding(RIGHTS.readLock(), TwoBrokerScenarios::shared));
        m.put("two_orderly", holding(RIGHTS.readLock(), TwoBrokerScenarios::orderly));
        m.put("two_retry", holding(RIGHTS.readLock(), TwoBrokerScenarios::retry));
        m.put("two_transaction", holding(RIGHTS.readLock(), TwoBrokerScenarios::transaction));
        m.put("two_look_up", holding(RIGHTS.readLock(), TwoBrokerScenarios::lookUp));
        m.put("two_lite", holding(RIGHTS.readLock(), TwoBrokerScenarios::lite));
        m.put("two_reset", holding(RIGHTS.readLock(), TwoBrokerScenarios::reset));
        m.put("two_wiped", holding(RIGHTS.writeLock(), TwoBrokerScenarios::wiped)); // the last one: none that begins later waits for it
    }

    private static Scenario.Play holding(Lock lock, Scenario.Play play) {
        return s -> {
            lock.lock();
            try {
                play.run(s);
            } finally {
                lock.unlock();
            }
        };
    }

    /** A topic with so many queues at each broker, which the name server knows. */
    private static String topic(Stage s, int queues) throws Exception {
        String topic = "s_" + s.name;
        for (String address : new String[] {s.broker, s.second}) s.admin.createAndUpdateTopicConfig(address, new TopicConfig(topic, queues, queues, 6));
        Stage.until(() -> {
            try {
                return s.admin.examineTopicRouteInfo(topic).getQueueDatas().size() == BROKERS.length;
            } catch (Exception e) {
                return false;
            }
        });
        return topic;
    }

    /** Waits until something holds; without it there is nothing to tell. */
    private static void await(String what, BooleanSupplier holds) {
        if (!Stage.until(holds)) throw new IllegalStateException("never: " + what);
    }

    private static void persisted(Stage s, String topic, long sum) {
        if (!s.persisted(s.group(""), topic, sum)) throw new IllegalStateException("never: offsets of " + sum + " in all at the brokers");
    }

    private static SendResult send(Stage s, String topic, String broker, int queue, String body) throws Exception {
        Message m = Stage.message(topic, body);
        m.setTags("t" + queue);
        m.setKeys("common");
        return s.producer().send(m, new MessageQueue(topic, broker, queue));
    }

    /** Bodies `PREFIX BROKER QUEUE NUMBER`, so many to a queue. */
    private static void fill(Stage s, String topic, String prefix, int queues, int each) throws Exception {
        for (int i = 0; i < each; i++)
            for (String broker : BROKERS)
                for (int queue = 0; queue < queues; queue++) send(s, topic, broker, queue, prefix + " " + broker + " " + queue + " " + i);
    }

    private static Set<String> owned(DefaultMQPushConsumer c, String topic) {
        Set<String> all = new TreeSet<>();
        for (MessageQueue q : c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet())
            if (q.getTopic().equals(topic)) all.add(q.getBrokerName() + " " + q.getQueueId());
        return all;
    }

    private static Set<String> queues(String broker, int count) {
        Set<String> all = new TreeSet<>();
        for (int i = 0; i < count; i++) all.add(broker + " " + i);
        return all;
    }

    private static DefaultMQPushConsumer consumer(Stage s, String topic, String name, Consumer<MessageExt> received) throws Exception {
        DefaultMQPushConsumer c = s.push(s.group(""), name);
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            ms.forEach(received);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return c;
    }

    private static void offsets(Stage s, String topic) throws Exception {
        Map<String, Object> table = new TreeMap<>();
        s.admin.examineConsumeStats(s.group(""), topic).getOffsetTable().forEach((q, w) -> table.put(q.getBrokerName() + " " + q.getTopic() + " " + q.getQueueId(), w.getBrokerOffset() + " " + w.getConsumerOffset()));
        s.row("kind", "offsets", "table", table);
    }

    /** What the name server tells of the cluster and of a topic. */
    private static void known(Stage s) throws Exception {
        String topic = topic(s, 3);
        var cluster = s.admin.examineBrokerClusterInfo();
        cluster.getClusterAddrTable().forEach((name, brokers) -> s.row("kind", "cluster", "name", name, "brokers", new TreeSet<>(brokers)));
        cluster.getBrokerAddrTable().forEach((name, data) -> s.row("kind", "broker", "name", name, "cluster", data.getCluster(), "ids", new TreeSet<>(data.getBrokerAddrs().keySet())));
        s.admin.examineTopicRouteInfo(topic).getQueueDatas().forEach(q -> s.row("kind", "queues", "broker", q.getBrokerName(), "read", q.getReadQueueNums(), "write", q.getWriteQueueNums(), "perm", q.getPerm()));
        s.row("kind", "clusters", "names", new TreeSet<>(s.admin.getTopicClusterList(topic)));
        fill(s, topic, "k", 3, 1);
        s.admin.examineTopicStats(topic).getOffsetTable().forEach((q, at) -> s.row("kind", "stats", "broker", q.getBrokerName(), "queue", q.getQueueId(), "min", at.getMinOffset(), "max", at.getMaxOffset()));
    }

    /** A producer that chooses by itself takes the queues of both in turn; a group gets all. */
    private static void spread(Stage s) throws Exception {
        String topic = topic(s, 2);
        Map<String, Integer> sent = new TreeMap<>();
        for (int i = 0; i < 12; i++) {
            MessageQueue q = s.producer().send(Stage.message(topic, "m" + i)).getMessageQueue();
            sent.merge(q.getBrokerName() + " " + q.getQueueId(), 1, Integer::sum);
        }
        s.row("kind", "sent", "queues", sent);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer c = consumer(s, topic, "c", m -> seen.add(Stage.text(m)));
        c.start();
        await("twelve messages", () -> seen.size() >= 12);
        s.row("kind", "received", "bodies", new TreeSet<>(seen));
        persisted(s, topic, 12);
        c.shutdown();
        offsets(s, topic);
    }

    /** Two consumers have a broker each, and one has both when the other leaves. */
    private static void shared(Stage s) throws Exception {
        String topic = topic(s, 2);
        Set<String> seen = ConcurrentHashMap.newKeySet(); // what changes hands before its offset is with its broker comes twice
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            String name = "c" + i;
            c[i] = consumer(s, topic, name, m -> {
                if (seen.add(Stage.text(m))) s.row("kind", "received", "by", name, "body", Stage.text(m));
            });
            c[i].start();
        }
        s.row("kind", "both", "halves", Stage.until(() -> owned(c[0], topic).equals(queues(BROKERS[0], 2)) && owned(c[1], topic).equals(queues(BROKERS[1], 2))));
        fill(s, topic, "both", 2, 3);
        await("twelve messages", () -> seen.size() >= 12);
        Stage.pause(300);
        c[0].shutdown();
        s.row("kind", "left", "all", Stage.until(() -> owned(c[1], topic).size() == 4));
        fill(s, topic, "left", 2, 3);
        await("twelve more messages", () -> seen.size() >= 24);
        persisted(s, topic, 24);
        c[1].shutdown();
        offsets(s, topic);
    }

    /** An orderly consumer locks its queues at each of the two; what is in them comes in order. */
    private static void orderly(Stage s) throws Exception {
        String topic = topic(s, 2);
        Map<String, List<String>> seen = new ConcurrentHashMap<>();
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = s.push(s.group(""), "c");
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerOrderly) (ms, x) -> {
            String queue = x.getMessageQueue().getBrokerName() + " " + x.getMessageQueue().getQueueId();
            for (MessageExt m : ms) seen.computeIfAbsent(queue, k -> Collections.synchronizedList(new ArrayList<>())).add(Stage.text(m));
            n.addAndGet(ms.size());
            return ConsumeOrderlyStatus.SUCCESS;
        });
        fill(s, topic, "o", 2, 5);
        c.start();
        await("twenty messages", () -> n.get() >= 20);
        new TreeMap<>(seen).forEach((queue, bodies) -> s.row("kind", "sequence", "queue", queue, "bodies", new ArrayList<>(bodies)));
        persisted(s, topic, 20);
        c.shutdown();
        offsets(s, topic);
    }

    /** What fails comes again from the broker that it was read from, and is dead there. */
    private static void retry(Stage s) throws Exception {
        String topic = topic(s, 1), group = s.group("");
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = s.push(group, "c");
        c.setMaxReconsumeTimes(1);
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            for (MessageExt m : ms) s.row("kind", "received", "broker", x.getMessageQueue().getBrokerName(), "message", Stage.told(m));
            n.addAndGet(ms.size());
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        c.start();
        await("both queues", () -> owned(c, topic).size() == 2);
        fill(s, topic, "r", 1, 2);
        await("four messages, twice each", () -> n.get() >= 8);
        DefaultMQPullConsumer dead = s.pull(s.group("_dead"));
        await("four dead letters", () -> total(dead, "%DLQ%" + group) >= 4);
        c.shutdown();
        for (MessageQueue q : dead.fetchSubscribeMessageQueues("%DLQ%" + group))
            for (MessageExt m : dead.pull(q, "*", 0, 32).getMsgFoundList()) s.row("kind", "dead", "broker", q.getBrokerName(), "message", Stage.told(m));
    }

    private static long total(DefaultMQPullConsumer c, String topic) {
        try {
            long n = 0;
            for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) n += c.maxOffset(q);
            return n;
        } catch (Exception e) {
            return 0;
        }
    }

    /** Half messages lie at both, and each is ended, or asked about, where it lies. */
    private static void transaction(Stage s) throws Exception {
        String topic = topic(s, 1);
        TransactionMQProducer p = new TransactionMQProducer(s.group("_tx"));
        p.setInstanceName("tx_" + s.name);
        p.setNamesrvAddr(s.namesrv);
        p.setSendMsgTimeout(10000);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message msg, Object how) {
                return how.equals("commit") ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt msg) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        p.start();
        s.atEnd(p::shutdown);
        Set<String> brokers = new TreeSet<>();
        for (String how : new String[] {"commit", "commit", "check", "check"}) brokers.add(p.sendMessageInTransaction(Stage.message(topic, how), how).getMessageQueue().getBrokerName());
        s.row("kind", "sent", "brokers", brokers);
        DefaultMQPullConsumer reader = s.pull(s.group("_reads"));
        Set<String> committed = new TreeSet<>();
        await("two commits and two after a check", () -> {
            committed.addAll(bodies(reader, topic));
            return committed.size() == 4;
        });
        s.row("kind", "committed", "bodies", committed); // as a set: looking every second, 5.x may ask about one that has ended, and store it twice
    }

    /** Keys are asked for at both; an id tells which of them has the message. */
    private static void lookUp(Stage s) throws Exception {
        String topic = topic(s, 1);
        List<SendResult> sent = new ArrayList<>();
        for (String broker : BROKERS) sent.add(send(s, topic, broker, 0, "at " + broker));
        Set<String> found = new TreeSet<>();
        Stage.until(() -> {
            try {
                for (MessageExt m : s.admin.queryMessage(topic, "common", 32, 0, Long.MAX_VALUE).getMessageList()) found.add(Stage.text(m));
            } catch (Exception e) {
                return false; // the index is a moment behind
            }
            return found.size() == 2;
        });
        s.row("kind", "by key", "bodies", found);
        for (SendResult r : sent) {
            s.row("kind", "by offset", "message", Stage.told(s.admin.viewMessage(topic, r.getOffsetMsgId())));
            s.row("kind", "by id", "message", Stage.told(s.admin.viewMessage(topic, r.getMsgId())));
        }
    }

    /** A consumer that names the queues of the second broker gets nothing of the first. */
    private static void lite(Stage s) throws Exception {
        String topic = topic(s, 2);
        fill(s, topic, "l", 2, 3);
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(s.group(""));
        c.setInstanceName(s.name);
        c.setNamesrvAddr(s.namesrv);
        c.setAutoCommit(false);
        s.atEnd(c::shutdown);
        c.start();
        List<MessageQueue> own = new ArrayList<>();
        for (MessageQueue q : new TreeSet<>(c.fetchMessageQueues(topic))) {
            s.row("kind", "queue", "broker", q.getBrokerName(), "queue", q.getQueueId());
            if (q.getBrokerName().equals(BROKERS[1])) own.add(q);
        }
        c.assign(own);
        for (MessageQueue q : own) c.seekToBegin(q);
        List<MessageExt> all = new ArrayList<>();
        await("six messages", () -> {
            all.addAll(c.poll(200));
            return all.size() >= 6;
        });
        for (MessageExt m : all) s.row("kind", "polled", "message", Stage.told(m));
        c.commitSync();
        for (MessageQueue q : own) s.row("kind", "committed", "broker", q.getBrokerName(), "queue", q.getQueueId(), "offset", c.committed(q));
    }

    /** A reset reaches the queues of both. */
    private static void reset(Stage s) throws Exception {
        String topic = topic(s, 1);
        Map<String, Integer> times = new ConcurrentHashMap<>();
        AtomicInteger n = new AtomicInteger();
        DefaultMQPushConsumer c = consumer(s, topic, "c", m -> {
            times.merge(Stage.text(m), 1, Integer::sum);
            n.incrementAndGet();
        });
        c.start();
        fill(s, topic, "r", 1, 3);
        await("six messages", () -> n.get() >= 6);
        persisted(s, topic, 6);
        Map<String, Long> told = new TreeMap<>();
        s.admin.resetOffsetByTimestamp(topic, s.group(""), 0, true).forEach((q, at) -> told.put(q.getBrokerName() + " " + q.getQueueId(), at));
        s.row("kind", "reset", "offsets", told);
        await("six messages again", () -> n.get() >= 12);
        persisted(s, topic, 6);
        c.shutdown();
        s.row("kind", "received", "times", new TreeMap<>(times));
        offsets(s, topic);
    }

    /** A broker without the right to write gets nothing of a producer that chooses by itself, and is read as before. */
    private static void wiped(Stage s) throws Exception {
        String topic = topic(s, 2);
        fill(s, topic, "before", 2, 1);
        s.admin.wipeWritePermOfBroker(s.namesrv, BROKERS[1]);
        try {
            s.row("kind", "wiped", "brokers", targets(s, topic, 1));
            DefaultMQPullConsumer reader = s.pull(s.group("_reads"));
            await("four messages and eight", () -> bodies(reader, topic).size() == 12);
            s.row("kind", "read", "bodies", bodies(reader, topic)); // without queues: with which of them a producer begins is chance
        } finally {
            s.admin.addWritePermOfBroker(s.namesrv, BROKERS[1]);
        }
        s.row("kind", "added", "brokers", targets(s, topic, 2));
    }

    /** What can be read of a topic at each broker, in order of its text; nothing where that cannot be asked yet. */
    private static Set<String> bodies(DefaultMQPullConsumer reader, String topic) {
        Set<String> all = new TreeSet<>();
        try {
            for (MessageQueue q : reader.fetchSubscribeMessageQueues(topic)) {
                List<MessageExt> found = reader.pull(q, "*", 0, 32).getMsgFoundList();
                if (found != null) found.forEach(m -> all.add(q.getBrokerName() + ": " + Stage.text(m)));
            }
        } catch (Exception e) {
            return new TreeSet<>(); // a topic that a broker has just made
        }
        return all;
    }

    /** Where a producer sends to, once it knows of so many brokers. */
    private static Set<String> targets(Stage s, String topic, int brokers) throws Exception {
        var producer = s.producer();
        var client = producer.getDefaultMQProducerImpl().getMqClientFactory();
        Stage.until(() -> {
            try {
                client.updateTopicRouteInfoFromNameServer(topic);
                Set<String> known = new TreeSet<>();
                for (MessageQueue q : producer.fetchPublishMessageQueues(topic)) known.add(q.getBrokerName());
                return known.size() == brokers;
            } catch (Exception e) {
                return false;
            }
        });
        Set<String> reached = new TreeSet<>();
        for (int i = 0; i < 8; i++) reached.add(producer.send(Stage.message(topic, "w" + i)).getMessageQueue().getBrokerName());
        return reached;
    }

    private TwoBrokerScenarios() { }
}
