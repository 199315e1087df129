package org.rmqfast.spark;

/**
 * What Rust says of a failure of a store, a topic or a sink: the class of rmqfast.errors, a colon, the words. PySpark has a class of
 * its own for an IllegalArgumentException; any other one would reach its users as an error of py4j.
 */
public final class SourceException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    /** Called from Rust. */
    public SourceException(String message) {
        super(message);
    }
}
