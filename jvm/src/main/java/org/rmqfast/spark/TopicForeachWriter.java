package org.rmqfast.spark;

import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Sends rows to a topic as they arrive, for {@code writeStream.foreach} and Spark's Real-Time Mode.
 *
 * A row is sent after a few milliseconds. When an epoch ends, all its rows are stored, each at least once.
 */
public final class TopicForeachWriter extends ForeachWriter<Row> {
    private static final long serialVersionUID = 1;
    private static final long MILLIS = 5;

    private final String[] options;
    private final StructType schema;
    private final int[] places;
    private transient TopicRows rows;
    private transient Timer timer;
    private transient volatile RuntimeException failure;

    /**
     * Checks options and columns.
     *
     * @param schema the schema of the rows, with columns of the sink
     * @param options the options of the sink, such as nameServer and topic
     */
    public TopicForeachWriter(StructType schema, Map<String, String> options) {
        this.options = Texts.pairs(options);
        this.schema = schema;
        places = NativeSink.columns(this.options, TopicFields.texts(schema));
    }

    @Override
    public boolean open(long partition, long epoch) {
        TopicRows opened = new TopicRows(options, TopicFields.texts(schema), (int) partition, true);
        rows = opened;
        failure = null;
        timer = new Timer("rmqfast-foreach-" + partition, true);
        timer.schedule(new TimerTask() {
            @Override
            public void run() {
                try {
                    opened.flush();
                } catch (RuntimeException e) {
                    failure = e;    // thrown at the next row or at the end
                    cancel();
                }
            }
        }, MILLIS, MILLIS);
        return true;
    }

    @Override
    public void process(Row row) {
        check();
        synchronized (rows) {   // the timer must not send half a row
            for (int place : places) {
                put(row, place);
            }
            rows.endRow();
        }
    }

    @Override
    public void close(Throwable error) {
        if (rows == null) {
            return;
        }
        timer.cancel();
        try {
            check();
            if (error == null) {
                rows.finish();
            }
        } finally {
            rows.close();
        }
    }

    private void check() {
        if (failure != null) {
            throw failure;
        }
    }

    private void put(Row row, int place) {
        Object value = row.get(place);
        if (value == null) {
            rows.putNull();
        } else if (value instanceof byte[]) {
            rows.put((byte[]) value);
        } else if (value instanceof String) {
            rows.put(UTF8String.fromString((String) value));
        } else if (value instanceof Number) {
            rows.put(((Number) value).longValue());
        } else if (schema.fields()[place].dataType() instanceof MapType) {
            Map<String, String> map = row.getJavaMap(place);
            rows.putCount(map.size());
            map.forEach((name, text) -> {
                rows.put(UTF8String.fromString(name));
                rows.put(UTF8String.fromString(text));
            });
        } else {
            List<String> texts = row.getList(place);
            rows.putCount(texts.size());
            texts.forEach(text -> rows.put(UTF8String.fromString(text)));
        }
    }
}
