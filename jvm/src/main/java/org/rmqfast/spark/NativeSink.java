package org.rmqfast.spark;

/** Native methods of the Rust library rust/jvm that send rows. Each throws {@link SourceException}. */
final class NativeSink {
    static {
        Native.ensureLoaded();
    }

    private NativeSink() {}

    /** Validates options and schema, and returns the indexes of the columns to send. Fields are name, type. */
    static native int[] columns(String[] options, String[] fields);

    /** Checks that messages of the option topic can be sent. */
    static native void check(String[] options, String[] fields, long[] month);

    /**
     * Opens the writer of a partition. Month is the start of this month and of the next, in milliseconds.
     *
     * If prompt, each block is sent at once. Otherwise the last rows of a block wait for more rows.
     */
    static native long open(String[] options, String[] fields, int partition, long[] month, boolean prompt);

    /** Hands over the first bytes of a block of rows. Returns false if the block must wait; then call {@link #isTaken}. */
    static native boolean send(long handle, byte[] block, int length);

    /** Whether the last block was taken. Waits up to 100 ms. */
    static native boolean isTaken(long handle);

    /** Returns rows, bytes, requests, retries and requests stored less safely; null if rows are not stored after 100 ms. */
    static native long[] finish(long handle);

    /** Stops the writer and frees it, exactly once. */
    static native void close(long handle);

    /** Formats the counts of {@link #finish} for logs. */
    static native String text(long[] counts);
}
