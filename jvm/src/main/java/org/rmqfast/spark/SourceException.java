package org.rmqfast.spark;

/** What Rust says of a failure of a store, a topic or a sink: the class of rmqfast.errors, a colon, the words. */
public final class SourceException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Called from Rust. */
    public SourceException(String message) {
        super(message);
    }
}
