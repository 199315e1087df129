package rmqlab;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Puts messages into a store directory with DefaultMessageStore, without a broker around it:
 *   Put DIR [--log-size 65536] [--queue-size 2000] [--slots 1000] [--index-num 4000] < messages
 * Each line is a message: topic, body (base64), properties (as stored), queueId, flag, sysFlag, bornTimestamp, bornHost and
 * storeHost ([address, port]), reconsumeTimes, preparedTransactionOffset; or {"batch": [message ...]}. A line of output
 * for each: status, queueOffset, commitLogOffset.
 */
public final class Put {
    public static void main(String[] args) {
        int code = 0;
        try {
            run(args);
        } catch (Throwable e) {
            e.printStackTrace();
            code = 1;
        }
        J.flush();
        Runtime.getRuntime().halt(code); // the store's threads would keep the process alive
    }

    private static void run(String[] args) throws Exception {
        Map<String, String> o = J.opts(args, 1);
        MessageStoreConfig c = new MessageStoreConfig();
        c.setStorePathRootDir(args[0]);
        c.setStorePathCommitLog(new File(args[0], "commitlog").getPath());
        c.setMappedFileSizeCommitLog(Integer.parseInt(o.getOrDefault("log-size", "65536")));
        c.setMappedFileSizeConsumeQueue(Integer.parseInt(o.getOrDefault("queue-size", "2000")));
        c.setMaxHashSlotNum(Integer.parseInt(o.getOrDefault("slots", "1000")));
        c.setMaxIndexNum(Integer.parseInt(o.getOrDefault("index-num", "4000")));
        c.setHaListenPort(0);
        c.setDiskMaxUsedSpaceRatio(95);
        c.setEnableLmq(true);
        c.setEnableMultiDispatch(true);
        DefaultMessageStore s = Shim.open(c);
        if (!s.load()) throw new IllegalStateException("load failed");
        s.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            JsonObject spec = J.parse(line);
            PutMessageResult r = spec.has("batch") ? s.putMessages(batch(spec.getAsJsonArray("batch"))) : s.putMessage(message(spec));
            var at = r.getAppendMessageResult();
            J.out(J.map("status", r.getPutMessageStatus().name(),
                "queueOffset", at == null ? null : at.getLogicsOffset(), "commitLogOffset", at == null ? null : at.getWroteOffset()));
        }
        while (s.dispatchBehindBytes() > 0) Thread.sleep(10);
        s.shutdown();
    }

    private static MessageExtBrokerInner message(JsonObject spec) throws Exception {
        MessageExtBrokerInner m = new MessageExtBrokerInner();
        m.setTopic(spec.get("topic").getAsString());
        m.setQueueId(spec.get("queueId").getAsInt());
        m.setBody(Base64.getDecoder().decode(spec.get("body").getAsString()));
        m.setFlag(spec.get("flag").getAsInt());
        m.setSysFlag(spec.get("sysFlag").getAsInt());
        m.setBornTimestamp(spec.get("bornTimestamp").getAsLong());
        m.setBornHost(host(spec, "bornHost"));
        m.setStoreHost(host(spec, "storeHost"));
        m.setReconsumeTimes(spec.get("reconsumeTimes").getAsInt());
        m.setPreparedTransactionOffset(spec.get("preparedTransactionOffset").getAsLong());
        // as SendMessageProcessor does it: the properties of a request are read, and written again in the order of the map
        MessageAccessor.setProperties(m, MessageDecoder.string2messageProperties(spec.get("properties").getAsString()));
        m.setPropertiesString(MessageDecoder.messageProperties2String(m.getProperties()));
        m.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(null, m.getTags()));
        return m;
    }

    private static MessageExtBatch batch(JsonArray specs) throws Exception {
        JsonObject first = specs.get(0).getAsJsonObject();
        MessageExtBatch m = new MessageExtBatch();
        m.setTopic(first.get("topic").getAsString());
        m.setQueueId(first.get("queueId").getAsInt());
        m.setSysFlag(first.get("sysFlag").getAsInt());
        m.setBornTimestamp(first.get("bornTimestamp").getAsLong());
        m.setBornHost(host(first, "bornHost"));
        m.setStoreHost(host(first, "storeHost"));
        ByteBuffer body = ByteBuffer.allocate(4 << 20);
        for (JsonElement e : specs) {
            JsonObject spec = e.getAsJsonObject();
            byte[] b = Base64.getDecoder().decode(spec.get("body").getAsString());
            byte[] p = spec.get("properties").getAsString().getBytes(StandardCharsets.UTF_8);
            body.putInt(22 + b.length + p.length).putInt(0).putInt(0).putInt(spec.get("flag").getAsInt());
            body.putInt(b.length).put(b).putShort((short) p.length).put(p);
        }
        byte[] sent = new byte[body.flip().remaining()];
        body.get(sent);
        m.setBody(sent);
        return m;
    }

    private static InetSocketAddress host(JsonObject spec, String name) {
        JsonArray a = spec.getAsJsonArray(name);
        return new InetSocketAddress(a.get(0).getAsString(), a.get(1).getAsInt());
    }

    private Put() { }
}
