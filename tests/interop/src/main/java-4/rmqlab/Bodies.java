package rmqlab;

import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Reads bodies of requests with the classes that they are of. JSON lines in, a line out for each:
 *   {"class": "HeartbeatData", "body": text}  -> {"again": what was read, written anew} | {"thrown": class: words}
 */
public final class Bodies {
    private static final String[] PACKAGES = {
        "org.apache.rocketmq.common.protocol.heartbeat.",
        "org.apache.rocketmq.common.protocol.body.",
        "org.apache.rocketmq.common.subscription.",
        "org.apache.rocketmq.common.",
    };

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject question = J.parse(line);
            J.out(read(named(question.get("class").getAsString()), question.get("body").getAsString()));
        }
        J.flush();
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> read(Class<?> of, String body) {
        try {
            Object read = RemotingSerializable.decode(body.getBytes(StandardCharsets.UTF_8), of);
            return J.map("again", RemotingSerializable.toJson(read, false));
        } catch (Throwable thrown) {
            return J.map("thrown", thrown.getClass().getSimpleName() + ": " + thrown.getMessage());
        }
    }

    private static Class<?> named(String name) throws ClassNotFoundException {
        for (String in : PACKAGES) {
            try {
                return Class.forName(in + name);
            } catch (ClassNotFoundException ignored) {
                // it is of another package
            }
        }
        throw new ClassNotFoundException(name);
    }
}
