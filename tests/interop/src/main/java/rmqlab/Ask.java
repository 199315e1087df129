package rmqlab;

import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;

/**
 * Asks DefaultMessageStore about a copy of a loaded store: Ask DIR [--slots 1000 --index-num 4000]. JSON lines in, a line
 * out for each:
 *   {"topic", "queueId", "time", "upper"}          -> {"offset"}: getOffsetInQueueByTime; upper is for 5.x
 *   {"topic", "queueId", "offset", "max", "tags"}  -> {"status", "next", "min", "max", "offsets", "slave"}: getMessage;
 *     "memory": bytes of memory that the machine is taken to have (4.x; with -Xint, as compiled code keeps the first); "slave": suggestPullingFromSlave
 *   {"topic", "queueId", "inDisk", "memory"}       -> {"inDisk"}: checkInDiskByConsumeOffset (4.x)
 *   {"topic", "queueId", "earliest"}               -> {"earliest"}: getEarliestMessageTime
 */
public final class Ask {
    public static void main(String[] args) {
        try {
            run(args);
            Runtime.getRuntime().halt(0);
        } catch (Throwable e) {
            J.flush();
            e.printStackTrace();
            Runtime.getRuntime().halt(4); // the store's threads would keep the process alive
        }
    }

    private static void run(String[] args) throws Exception {
        Path work = DumpStore.copy(new File(args[0]).toPath());
        DefaultMessageStore s = Shim.open(DumpStore.config(work, J.opts(args, 1)));
        if (!s.load()) throw new IllegalStateException("store not loaded");
        DumpStore.allowReads(s);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject q = J.parse(line);
            if (q.has("memory")) Shim.memory(q.get("memory").getAsLong());
            if (q.has("time")) search(s, q);
            else if (q.has("inDisk")) J.out(J.map("inDisk", Shim.inDisk(s, topic(q), queue(q), q.get("inDisk").getAsLong())));
            else if (q.has("earliest")) J.out(J.map("earliest", s.getEarliestMessageTime(topic(q), queue(q))));
            else get(s, q);
        }
        J.flush();
        DumpStore.rm(work);
    }

    private static void search(DefaultMessageStore s, JsonObject q) {
        boolean upper = q.has("upper") && q.get("upper").getAsBoolean();
        J.out(J.map("offset", Shim.search(s, topic(q), queue(q), q.get("time").getAsLong(), upper)));
    }

    private static void get(DefaultMessageStore s, JsonObject q) throws Exception {
        long offset = q.get("offset").getAsLong();
        GetMessageResult r = s.getMessage("ask", topic(q), queue(q), offset, q.get("max").getAsInt(),
            Shim.tagFilter(topic(q), q.get("tags").getAsString()));
        List<Long> offsets = new ArrayList<>();
        for (ByteBuffer b : r.getMessageBufferList()) offsets.add(MessageDecoder.decode(b.slice(), false).getQueueOffset());
        J.out(J.map("status", r.getStatus().name(), "next", r.getNextBeginOffset(), "min", r.getMinOffset(),
            "max", r.getMaxOffset(), "offsets", offsets, "slave", r.isSuggestPullingFromSlave()));
        r.release();
    }

    private static String topic(JsonObject q) {
        return q.get("topic").getAsString();
    }

    private static int queue(JsonObject q) {
        return q.get("queueId").getAsInt();
    }

    private Ask() { }
}
