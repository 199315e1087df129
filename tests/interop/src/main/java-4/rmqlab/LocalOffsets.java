package rmqlab;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Has the offsets of a broadcast consumer stored and read by its class. JSON lines in, a line out for each; a queue is [topic, broker, id]:
 *   {"op": "persist", "offsets": [[queue, offset]], "queues": [queue]}  -> {"file", "bak"}: persistAll of these; null where there is no such file
 *   {"op": "load", "file", "bak", "queues"}     -> {"offsets"} | {"error"}: load, then what is in memory; "read": readOffset of the store
 * With "group" in the question it is that group's, which persists over what it has.
 */
public final class LocalOffsets {
    private static int groups;

    public static void main(String[] args) throws Exception {
        Path directory = Files.createTempDirectory("offsets");
        System.setProperty("rocketmq.client.localOffsetStoreDir", directory.toString());
        MQClientInstance instance = new MQClientInstance(new ClientConfig(), 0, "10.0.0.1@lab");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject question = J.parse(line);
            String group = question.has("group") ? question.get("group").getAsString() : "own" + groups++;
            Path file = directory.resolve("10.0.0.1@lab").resolve(group).resolve("offsets.json");
            Path bak = file.resolveSibling("offsets.json.bak");
            LocalFileOffsetStore store = new LocalFileOffsetStore(instance, group);
            J.out(question.get("op").getAsString().equals("load") ? loaded(store, question, file, bak) : persisted(store, question, file, bak));
        }
        J.flush();
        DumpStore.rm(directory);
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> persisted(LocalFileOffsetStore store, JsonObject question, Path file, Path bak) throws Exception {
        for (JsonElement item : question.getAsJsonArray("offsets")) {
            JsonArray pair = item.getAsJsonArray();
            store.updateOffset(queue(pair.get(0)), pair.get(1).getAsLong(), false);
        }
        Set<MessageQueue> queues = new HashSet<>();
        for (JsonElement item : question.getAsJsonArray("queues")) queues.add(queue(item));
        store.persistAll(queues);
        return J.map("file", text(file), "bak", text(bak));
    }

    private static Map<String, Object> loaded(LocalFileOffsetStore store, JsonObject question, Path file, Path bak) throws Exception {
        put(file, question.get("file"));
        put(bak, question.get("bak"));
        Map<String, Object> answer = new TreeMap<>();
        try {
            store.load();
            List<Object> offsets = new ArrayList<>();
            store.cloneOffsetTable("").forEach((q, offset) -> offsets.add(List.of(List.of(q.getTopic(), q.getBrokerName(), q.getQueueId()), offset)));
            answer.put("offsets", offsets);
        } catch (MQClientException e) {
            answer.put("error", e.getMessage());
        } catch (RuntimeException e) {
            answer.put("thrown", e.toString());
        }
        List<Object> read = new ArrayList<>();
        for (JsonElement item : question.getAsJsonArray("queues")) {
            try {
                read.add(store.readOffset(queue(item), ReadOffsetType.READ_FROM_STORE));
            } catch (RuntimeException e) {
                read.add(e.toString());
            }
        }
        answer.put("read", read);
        return answer;
    }

    private static void put(Path file, JsonElement text) throws Exception {
        Files.deleteIfExists(file);
        if (text == null || text.isJsonNull()) return;
        Files.createDirectories(file.getParent());
        Files.writeString(file, text.getAsString());
    }

    private static String text(Path file) throws Exception {
        return Files.exists(file) ? Files.readString(file) : null;
    }

    private static MessageQueue queue(JsonElement item) {
        JsonArray parts = item.getAsJsonArray();
        return new MessageQueue(parts.get(0).getAsString(), parts.get(1).getAsString(), parts.get(2).getAsInt());
    }
}
