package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** The position of a stream, as the text of its checkpoint; Rust parses it. */
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
