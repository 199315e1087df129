package rmqlab;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends without end, whatever becomes of the broker, until its standard input is closed.
 *   Steady --namesrv A --topic T [--threads 2] [--pause-ms 1] [--size 200]
 * One JSON line per message that was acknowledged: its name, queue and offset. A body begins with the name and a blank.
 */
public final class Steady {
    public static void main(String[] args) throws Exception {
        Map<String, String> o = J.opts(args, 0);
        int threads = Integer.parseInt(o.getOrDefault("threads", "2")), size = Integer.parseInt(o.getOrDefault("size", "200"));
        long pause = Long.parseLong(o.getOrDefault("pause-ms", "1"));
        DefaultMQProducer p = new DefaultMQProducer("steady_producer");
        p.setNamesrvAddr(o.get("namesrv"));
        p.setRetryTimesWhenSendFailed(0);
        p.setSendMsgTimeout(3000);
        p.setPollNameServerInterval(1000);
        p.start();
        AtomicBoolean stop = new AtomicBoolean();
        AtomicLong failed = new AtomicLong(), sent = new AtomicLong();
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            final int id = t;
            all[t] = new Thread(() -> {
                for (long n = 0; !stop.get(); n++) {
                    String name = id + "-" + n;
                    StringBuilder body = new StringBuilder(name).append(' ');
                    while (body.length() < size) body.append('x');
                    try {
                        SendResult r = p.send(new Message(o.get("topic"), "t" + n % 3, name, body.toString().getBytes(StandardCharsets.UTF_8)));
                        if (r.getSendStatus() == SendStatus.SEND_OK) {
                            J.out(J.map("name", name, "queueId", r.getMessageQueue().getQueueId(), "queueOffset", r.getQueueOffset()));
                            sent.incrementAndGet();
                        }
                        Thread.sleep(pause);
                    } catch (Exception e) {
                        failed.incrementAndGet();
                        Stage.pause(20);
                    }
                }
            });
            all[t].start();
        }
        while (System.in.read() >= 0) { }
        stop.set(true);
        for (Thread t : all) t.join();
        J.out(J.map("sent", sent.get(), "failed", failed.get()));
        J.flush();
        Runtime.getRuntime().halt(0);
    }

    private Steady() { }
}
