package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** Where a stream is, as the text that its checkpoint has; Rust reads it. */
final class StreamOffset extends Offset {
    private final String json;

    StreamOffset(String json) {
        this.json = json;
    }

    /** Its text; null for none. */
    static String text(Offset offset) {
        return offset == null ? null : offset.json();
    }

    @Override
    public String json() {
        return json;
    }
}
