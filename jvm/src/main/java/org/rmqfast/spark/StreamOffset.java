package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** The position of a stream, as the JSON of its checkpoint. Only Rust parses it. */
final class StreamOffset extends Offset {
    private final String json;

    StreamOffset(String json) {
        this.json = json;
    }

    /** Returns the JSON of an offset, or null. */
    static String text(Offset offset) {
        return offset == null ? null : offset.json();
    }

    @Override
    public String json() {
        return json;
    }
}
