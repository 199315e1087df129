package org.rmqfast.spark;

/** The functions of rust/jvm that send rows. Each throws {@link SourceException}. */
final class NativeSink {
    static {
        Native.ensureLoaded();
    }

    private NativeSink() {}

    /** Positions in a schema of the columns to send; fields are name, type. */
    static native int[] columns(String[] options, String[] fields);

    /** Asks a name server whether the topic of the options is there. */
    static native void check(String[] options, String[] fields, long[] month);

    /**
     * Begins to send a partition; month is when this one began, and when the next one does. What is prompt is sent block by
     * block, otherwise its last rows wait for more.
     */
    static native long open(String[] options, String[] fields, int partition, long[] month, boolean prompt);

    /** Takes a block of rows of so many bytes; false where it has to wait for {@link #isTaken}. */
    static native boolean send(long handle, byte[] block, int length);

    /** Whether the last block is taken; waits a little. */
    static native boolean isTaken(long handle);

    /** Rows, bytes, requests, tries, requests that are less safe; null where not all is stored yet, after a little while. */
    static native long[] finish(long handle);

    /** Sends no more and frees what {@link #open} gave, once. */
    static native void close(long handle);

    /** Counts of {@link #finish} in words. */
    static native String text(long[] counts);
}
