package org.rmqfast.spark;

/**
 * An error of Rust about a store, a topic or a sink: the class of rmqfast.errors, a colon, the text. PySpark has a class of
 * its own for an IllegalArgumentException; any other one would reach its users as an error of py4j.
 */
public final class SourceException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    /** Called from Rust. */
    public SourceException(String message) {
        super(message);
    }
}
