package org.rmqfast.spark;

/** What Rust says of a failure: the class of rmqfast.errors, a colon, the words. */
public final class StoreException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Called from Rust. */
    public StoreException(String message) {
        super(message);
    }
}
