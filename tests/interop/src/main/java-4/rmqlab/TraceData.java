package rmqlab;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceTransferBean;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.common.message.MessageType;

/**
 * Has traces made texts, and read again, by the class of the client. JSON lines in, a line out for each:
 *   a context with "beans", members named as Java's  -> {"data", "keys"}: encoderFromContextBean
 *   {"text"}                                          -> {"contexts"} | {"thrown"}: decoderFromTraceDataString
 */
public final class TraceData {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject question = J.parse(line);
            J.out(question.has("text") ? decoded(question.get("text").getAsString()) : encoded(question));
        }
        J.flush();
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> encoded(JsonObject o) {
        TraceContext context = new TraceContext();
        context.setTraceType(TraceType.valueOf(text(o, "traceType")));
        context.setTimeStamp(o.get("timeStamp").getAsLong());
        context.setRegionId(text(o, "regionId"));
        context.setGroupName(text(o, "groupName"));
        context.setCostTime(o.get("costTime").getAsInt());
        context.setSuccess(o.get("success").getAsBoolean());
        context.setRequestId(text(o, "requestId"));
        context.setContextCode(o.get("contextCode").getAsInt());
        List<TraceBean> beans = new ArrayList<>();
        for (JsonElement each : o.getAsJsonArray("beans")) beans.add(bean(each.getAsJsonObject()));
        context.setTraceBeans(beans);
        TraceTransferBean made = TraceDataEncoder.encoderFromContextBean(context);
        return J.map("data", made.getTransData(), "keys", new TreeSet<>(made.getTransKey()));
    }

    private static TraceBean bean(JsonObject o) {
        TraceBean bean = new TraceBean();
        bean.setTopic(text(o, "topic"));
        bean.setMsgId(text(o, "msgId"));
        bean.setOffsetMsgId(text(o, "offsetMsgId"));
        bean.setTags(text(o, "tags"));
        bean.setKeys(text(o, "keys"));
        bean.setStoreHost(text(o, "storeHost"));
        bean.setRetryTimes(o.get("retryTimes").getAsInt());
        bean.setBodyLength(o.get("bodyLength").getAsInt());
        bean.setMsgType(MessageType.valueOf(text(o, "msgType")));
        bean.setTransactionId(text(o, "transactionId"));
        bean.setTransactionState(LocalTransactionState.valueOf(text(o, "transactionState")));
        bean.setFromTransactionCheck(o.get("fromTransactionCheck").getAsBoolean());
        return bean;
    }

    private static Map<String, Object> decoded(String text) {
        try {
            List<Object> contexts = new ArrayList<>();
            for (TraceContext c : TraceDataEncoder.decoderFromTraceDataString(text)) contexts.add(told(c));
            return J.map("contexts", contexts);
        } catch (RuntimeException e) {
            return J.map("thrown", e.toString());
        }
    }

    /** What kind of context tells what, so that no default of this machine or this moment is in it. */
    private static Map<String, Object> told(TraceContext c) {
        TraceBean b = c.getTraceBeans().get(0);
        Map<String, Object> o = J.map("traceType", c.getTraceType().name(), "groupName", c.getGroupName(), "success", c.isSuccess(),
            "costTime", c.getCostTime(), "contextCode", c.getContextCode(), "msgId", b.getMsgId(), "keys", b.getKeys());
        boolean isAfter = c.getTraceType() == TraceType.SubAfter;
        if (!isAfter || !c.getGroupName().isEmpty()) o.put("timeStamp", c.getTimeStamp());
        if (!isAfter) o.put("regionId", c.getRegionId());
        if (isAfter || c.getTraceType() == TraceType.SubBefore) o.put("requestId", c.getRequestId());
        else {
            o.putAll(J.map("topic", b.getTopic(), "tags", b.getTags(), "storeHost", b.getStoreHost(), "msgType", b.getMsgType().name()));
        }
        if (c.getTraceType() == TraceType.SubBefore) o.put("retryTimes", b.getRetryTimes());
        if (c.getTraceType() == TraceType.Pub) o.putAll(J.map("bodyLength", b.getBodyLength(), "offsetMsgId", b.getOffsetMsgId()));
        if (c.getTraceType() == TraceType.EndTransaction) {
            o.putAll(J.map("transactionId", b.getTransactionId(), "transactionState", b.getTransactionState().name(),
                "fromTransactionCheck", b.isFromTransactionCheck()));
        }
        return o;
    }

    private static String text(JsonObject o, String name) {
        return o.get(name).isJsonNull() ? null : o.get(name).getAsString();
    }
}
