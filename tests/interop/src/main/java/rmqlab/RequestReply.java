package rmqlab;

import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Replies to the messages of one topic with "java: " and their bodies, and asks: RequestReply --namesrv A --replies TOPIC.
 * JSON lines in, {"topic", "body", "timeout", "plain"}: a request each, to queue 0 of its topic, or with "plain" by the
 * request() without a queue. A line out for each: {"kind": "reply", "body", "properties"}, {"kind": "error", "exception",
 * "message"}; for each message replied to {"kind": "asked", "body", "properties", "status"}; first {"kind": "ready"}.
 */
public final class RequestReply {
    public static void main(String[] args) throws Exception {
        Map<String, String> o = J.opts(args, 0);
        DefaultMQProducer producer = new DefaultMQProducer("java_request_reply");
        producer.setNamesrvAddr(o.get("namesrv"));
        producer.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java_repliers");
        consumer.setNamesrvAddr(o.get("namesrv"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(o.get("replies"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) reply(producer, message);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        J.out(J.map("kind", "ready"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) ask(producer, J.parse(line));
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }

    private static void reply(DefaultMQProducer producer, MessageExt message) {
        String status;
        try {
            Message reply = MessageUtil.createReplyMessage(message, ("java: " + text(message)).getBytes(StandardCharsets.UTF_8));
            status = producer.send(reply, 5000).getSendStatus().name();
        } catch (Exception e) {
            status = String.valueOf(e);
        }
        J.out(J.map("kind", "asked", "body", text(message), "properties", new TreeMap<>(message.getProperties()), "status", status));
    }

    private static void ask(DefaultMQProducer producer, JsonObject line) {
        Message message = new Message(line.get("topic").getAsString(), line.get("body").getAsString().getBytes(StandardCharsets.UTF_8));
        long timeout = line.get("timeout").getAsLong();
        try {
            Message reply = line.has("plain") ? producer.request(message, timeout)
                : producer.request(message, (queues, m, argument) -> queues.get(0), null, timeout);
            J.out(J.map("kind", "reply", "body", text(reply), "properties", new TreeMap<>(reply.getProperties())));
        } catch (Exception e) {
            J.out(J.map("kind", "error", "exception", e.getClass().getSimpleName(), "message", e.getMessage()));
        }
    }

    private static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
