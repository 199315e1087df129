package rmqlab;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Producers: what a send answers and what of it can be read. */
final class SendScenarios {
    static void add(Map<String, Scenario.Play> m) {
        m.put("transaction", SendScenarios::transaction);
        m.put("request_reply", SendScenarios::requestReply);
        m.put("batch", SendScenarios::batch);
        m.put("oneway", SendScenarios::oneway);
        m.put("compressed", SendScenarios::compressed);
        m.put("odd", SendScenarios::odd);
        m.put("errors", SendScenarios::errors);
        m.put("auto_create", SendScenarios::autoCreate);
    }

    private static void transaction(Stage s) throws Exception {
        String topic = s.topic(1);
        Map<String, AtomicInteger> checks = new ConcurrentHashMap<>();
        AtomicInteger resolved = new AtomicInteger();
        TransactionMQProducer p = new TransactionMQProducer(s.group("_tx"));
        p.setInstanceName("tx_" + s.name);
        p.setNamesrvAddr(s.namesrv);
        p.setSendMsgTimeout(10000);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message msg, Object arg) {
                return arg.equals("commit") ? LocalTransactionState.COMMIT_MESSAGE
                    : arg.equals("rollback") ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt msg) {
                String body = Stage.text(msg);
                int n = checks.computeIfAbsent(body, k -> new AtomicInteger()).incrementAndGet();
                if (n == 1) s.row("kind", "check", "message", Stage.told(msg));
                if (body.equals("check-twice") && n == 1) return LocalTransactionState.UNKNOW;
                resolved.incrementAndGet();
                return body.equals("check-rollback") ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        p.start();
        s.atEnd(p::shutdown);
        var client = p.getDefaultMQProducerImpl().getMqClientFactory();
        client.updateTopicRouteInfoFromNameServer(topic);
        Stage.until(() -> {     // a broker that knows no producer of the group leaves out a round of checks
            client.sendHeartbeatToAllBrokerWithLock();
            return s.isConnected(s.group("_tx"), topic);
        });
        for (String how : new String[] {"commit", "rollback", "check-commit", "check-rollback", "check-twice"}) {
            Message m = Stage.message(topic, how);
            m.setTags("tx");
            m.setKeys("tx-" + how);
            m.putUserProperty("how", how);
            SendResult r = p.sendMessageInTransaction(m, how);
            s.row("kind", "sent", "how", how, "result", Stage.told(r), "transactionId", r.getTransactionId() != null);
        }
        Stage.until(() -> resolved.get() >= 3);
        s.drain("committed", topic, 3);
    }

    private static void requestReply(Stage s) throws Exception {
        String topic = s.topic(1);
        AtomicInteger replies = new AtomicInteger();
        DefaultMQProducer answering = s.producer();
        DefaultMQPushConsumer c = s.push(s.group(""), "c");
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, x) -> {
            for (MessageExt m : ms) {
                s.row("kind", "asked", "message", Stage.told(m));
                try {
                    Message reply = MessageUtil.createReplyMessage(m, ("reply to " + Stage.text(m)).getBytes(StandardCharsets.UTF_8));
                    s.row("kind", "replied", "result", Stage.told(answering.send(reply, 3000)));
                } catch (Exception e) {
                    s.row("kind", "reply failed", "why", String.valueOf(e));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        DefaultMQProducer asking = new DefaultMQProducer(s.group("_asks"));
        asking.setInstanceName("asks_" + s.name);
        asking.setNamesrvAddr(s.namesrv);
        asking.start();
        s.atEnd(asking::shutdown);
        Stage.until(() -> GroupScenarios.owned(c, topic).size() == 1);
        var client = asking.getDefaultMQProducerImpl().getMqClientFactory();
        client.updateTopicRouteInfoFromNameServer(topic);
        Stage.until(() -> {
            client.sendHeartbeatToAllBrokerWithLock(); // sends nothing while another one is being sent
            return s.isConnected(s.group("_asks"), topic);
        });
        for (int i = 0; i < 3; i++) {
            asking.request(Stage.message(topic, "question" + i), new RequestCallback() {
                @Override
                public void onSuccess(Message reply) {
                    s.row("kind", "reply", "body", new String(reply.getBody(), StandardCharsets.UTF_8), "properties", new TreeMap<>(reply.getProperties()));
                    replies.incrementAndGet();
                }

                @Override
                public void onException(Throwable e) {
                    s.row("kind", "no reply", "exception", e.getClass().getSimpleName());
                    replies.incrementAndGet();
                }
            }, 60_000);
            final int answered = i + 1;
            Stage.until(() -> replies.get() >= answered);
        }
        Stage.pause(300);
        String deaf = s.topic("s_deaf", 1, 6);
        try {
            asking.request(Stage.message(deaf, "nobody"), 1500);
        } catch (Exception e) {
            s.row("kind", "no reply", "exception", e.getClass().getSimpleName());
        }
    }

    private static void batch(Stage s) throws Exception {
        String topic = s.topic(2);
        for (int size : new int[] {1, 7, 64}) {
            List<Message> l = new ArrayList<>();
            for (int i = 0; i < size; i++) {
                Message m = Stage.message(topic, "batch" + size + "-" + i);
                m.setTags("t" + i % 2);
                m.setKeys("b" + i);
                m.putUserProperty("i", String.valueOf(i));
                l.add(m);
            }
            s.row("kind", "sent", "size", size, "result", Stage.told(s.producer().send(l, s.queue(topic, size % 2))));
        }
        s.drain("stored", topic, 72);
    }

    private static void oneway(Stage s) throws Exception {
        String topic = s.topic(2);
        for (int i = 0; i < 6; i++) {
            s.producer().sendOneway(Stage.message(topic, "oneway" + i), s.queue(topic, i % 2));
            Stage.pause(100); // RocketMQ's threads would take them in any order
        }
        s.drain("stored", topic, 6);
    }

    private static void compressed(Stage s) throws Exception {
        String topic = s.topic(1);
        for (int size : new int[] {4000, 5000, 100_000}) {
            byte[] body = new byte[size];
            for (int i = 0; i < size; i++) body[i] = (byte) ("abcdefghij".charAt(i / 7 % 10));
            SendResult r = s.producer().send(new Message(topic, body));
            MessageExt m = s.pull(s.group("_" + size)).viewMessage(topic, r.getOffsetMsgId());
            s.row("kind", "viewed", "size", size, "smaller", m.getStoreSize() < size, "message", Stage.told(m));
        }
        s.drain("stored", topic, 3);
    }

    /** Bodies of every byte and of nearly all that a broker takes, and texts beyond ASCII. */
    private static void odd(Stage s) throws Exception {
        String topic = s.topic(1);
        byte[] bytes = new byte[256], large = new byte[4_000_000];
        for (int i = 0; i < 256; i++) bytes[i] = (byte) i;
        new java.util.Random(1).nextBytes(large);
        Message[] all = {new Message(topic, bytes), new Message(topic, large), Stage.message(topic, "\u4e2d\u6587 \u00e9\ud83d\ude80"), Stage.message(topic, "flag")};
        all[2].setTags("tag-\u00fc");
        all[2].setKeys("k\u00e4");
        all[2].putUserProperty("\u4e2d", "a=b;c \"quoted\" {json:1}");
        all[3].setFlag(Integer.MIN_VALUE);
        all[3].setTags(" blanks around ");
        for (Message m : all) s.row("kind", "sent", "result", Stage.told(s.send(m, 0)));
        s.drain("stored", topic, all.length);
    }

    private static void errors(Stage s) throws Exception {
        String topic = s.topic(2), readOnly = s.topic("s_errors_ro", 1, 4);
        fails(s, "queue that is not there", () -> s.send(topic, 99, "x"));
        fails(s, "topic without the right to write", () -> s.send(readOnly, 0, "x"));
        fails(s, "topic name with a blank", () -> s.send("no blank", 0, "x"));
        fails(s, "system topic", () -> s.send("SCHEDULE_TOPIC_XXXX", 0, "x"));
        fails(s, "topic nobody made, queue named", () -> s.send("s_errors_new", 9, "x"));
        fails(s, "properties too long", () -> {
            Message m = Stage.message(topic, "x");
            char[] long_ = new char[33000];
            Arrays.fill(long_, 'v');
            m.putUserProperty("p", new String(long_));
            s.send(m, 0);
        });
        fails(s, "body too large for the broker", () -> {
            DefaultMQProducer p = new DefaultMQProducer(s.group("_large"));
            p.setInstanceName("large");
            p.setNamesrvAddr(s.namesrv);
            p.setMaxMessageSize(8 << 20);
            p.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            p.setRetryTimesWhenSendFailed(0);
            p.start();
            s.atEnd(p::shutdown);
            p.send(new Message(topic, new byte[5 << 20]));
        });
        fails(s, "consumer of a broken expression", () -> Stage.known(s.pull(s.group("_sql")), topic).pull(s.queue(topic, 0), org.apache.rocketmq.client.consumer.MessageSelector.bySql("a >"), 0, 1));
        s.drain("stored", topic, 0);
    }

    private static void fails(Stage s, String what, Work work) {
        try {
            work.run();
            s.row("kind", "error", "what", what, "exception", null);
        } catch (Exception e) {
            Throwable first = e;
            while (first.getCause() != null) first = first.getCause();
            int code = first instanceof MQBrokerException ? ((MQBrokerException) first).getResponseCode() : first instanceof MQClientException ? ((MQClientException) first).getResponseCode() : 0;
            s.row("kind", "error", "what", what, "exception", first.getClass().getSimpleName(), "code", code, "message", first.getMessage());
        }
    }

    interface Work {
        void run() throws Exception;
    }

    private static void autoCreate(Stage s) throws Exception {
        SendResult r = s.producer().send(Stage.message("s_auto", "made on the way"));
        s.row("kind", "sent", "status", r.getSendStatus().name(), "queueOffset", r.getQueueOffset());
        Stage.until(() -> s.exists("s_auto"));
        s.row("kind", "route", "queues", String.valueOf(s.admin.examineTopicRouteInfo("s_auto").getQueueDatas()));
    }
}
