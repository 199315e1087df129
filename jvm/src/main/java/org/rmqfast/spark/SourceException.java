package org.rmqfast.spark;

/**
 * An error from Rust: the class of rmqfast.errors, a colon and the text.
 *
 * PySpark converts an IllegalArgumentException to an exception of its own. Other exceptions would reach users as errors
 * of py4j.
 */
public final class SourceException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    public SourceException(String message) {
        super(message);
    }
}
