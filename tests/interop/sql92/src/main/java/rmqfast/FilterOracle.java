package rmqfast;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;

/** Asks RocketMQ's own classes: a file of JSON lines in, the same lines with answers out. */
public class FilterOracle {
    private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();

    public static void main(String[] args) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            JsonObject question = JsonParser.parseString(line).getAsJsonObject();
            if (question.has("tags")) {
                answerTags(question);
            } else {
                question.addProperty("want", sql(question));
            }
            answers.add(GSON.toJson(question));
        }
        Files.writeString(Path.of(args[1]), String.join("\n", answers) + "\n");
    }

    /** error: does not compile; throws: fails on these properties; else the value, which null can be. */
    private static String sql(JsonObject question) {
        Expression expression;
        try {
            expression = new SqlFilter().compile(question.get("expr").getAsString());
        } catch (MQFilterException e) {
            return "error";
        }
        try {
            Object value = expression.evaluate(new Properties(question.getAsJsonObject("props")));
            return String.valueOf(value);
        } catch (Exception e) {
            return "throws";
        }
    }

    private static void answerTags(JsonObject question) throws Exception {
        try {
            Object data = buildSubscriptionData().invoke(null, "topic", question.get("tags").getAsString());
            question.addProperty("all", "*".equals(call(data, "getSubString")));
            question.add("set", sorted((Collection<?>) call(data, "getTagsSet")));
            question.add("codes", sorted((Collection<?>) call(data, "getCodeSet")));
        } catch (InvocationTargetException e) {
            question.addProperty("error", true);
        }
    }

    /** 5.x moved the class to another package. */
    private static Method buildSubscriptionData() throws Exception {
        Class<?> api;
        try {
            api = Class.forName("org.apache.rocketmq.common.filter.FilterAPI");
        } catch (ClassNotFoundException e) {
            api = Class.forName("org.apache.rocketmq.remoting.protocol.filter.FilterAPI");
        }
        return api.getMethod("buildSubscriptionData", String.class, String.class);
    }

    private static Object call(Object target, String getter) throws Exception {
        return target.getClass().getMethod(getter).invoke(target);
    }

    private static JsonArray sorted(Collection<?> values) {
        JsonArray array = new JsonArray();
        for (Object value : new TreeSet<>(values)) {
            array.add(GSON.toJsonTree(value));
        }
        return array;
    }

    /** What MessageEvaluationContext of the broker is: a map of strings. */
    private record Properties(Map<String, String> values) implements EvaluationContext {
        Properties(JsonObject source) {
            this(new HashMap<>());
            for (Map.Entry<String, JsonElement> entry : source.entrySet()) {
                values.put(entry.getKey(), entry.getValue().getAsString());
            }
        }

        @Override
        public Object get(String name) {
            return values.get(name);
        }

        @Override
        public Map<String, Object> keyValues() {
            return new HashMap<>(values);
        }
    }
}
