package org.rmqfast.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.tukaani.xz.XZInputStream;

/** Native methods of the Rust library rust/jvm. Each throws {@link SourceException}. */
final class Native {
    private static final Logger LOG = LoggerFactory.getLogger("rmqfast.spark");

    static {
        load();
    }

    private Native() {}

    /** Called by other classes with native methods, so that this class loads the library. */
    static void ensureLoaded() {}

    /** Whether options select a live cluster instead of a store directory. */
    static native boolean isTopic(String[] options);

    /** Panics in Rust. Tests use it to check that a platform's build turns panics into exceptions. */
    static native boolean panic(String text);

    /** Returns the options with the text of the schema file that they name. */
    static native String[] withSchemaText(String[] options);

    /** Returns the names of the topics in a catalog with these options. */
    static native String[] topics(String[] options);

    /** Returns the options of the table of a topic in a catalog with these options. */
    static native String[] tableOptions(String[] options, String topic);

    /** Returns the options of a table with those of one query. */
    static native String[] withOptions(String[] options, String[] given);

    /** Returns the options of a table that count for its reads, or for its writes. */
    static native String[] optionsOf(String[] options, boolean isWrite);

    /** Returns the options that people may see. */
    static native String[] shownOptions(String[] options);

    /** Returns all columns of messages, as alternating names and types. */
    static native String[] allColumns();

    /** Returns the columns that the options select, as alternating names and types. The type of a struct is JSON. */
    static native String[] row(String[] options);

    /** Replaces offsets in the options by current numbers. {@link Texts#fields} makes the fields. */
    static native String[] resolve(String[] options, String[] fields);

    /** Returns for each filter whether the scan applies it. A filter is kind, column, values. */
    static native boolean[] push(String[] options, String[][] filters);

    /**
     * Returns counts from the queues alone: messages, 1 if there are any, least and largest queue offset. Null if
     * messages must be read.
     */
    static native long[] listed(String[] options, String[][] filters);

    static native String describe(String[] options, String[][] filters);

    /** Returns the serialized pieces that {@link #open} takes, planned for a number of cores. */
    static native byte[][] plan(String[] options, String[] fields, String[][] filters, int cores);

    /** Opens a piece. If {@code readsAhead}, the task also pulls messages for the next batch. */
    static native long open(String[] options, String[] fields, String[][] filters, byte[] piece, long limit,
            boolean isRepeated, boolean readsAhead);

    /** Fills the next batch and writes the addresses of its arrays. Returns the rows; 0 after the wait, -1 at the end. */
    static native long next(long handle, long[] addresses, long waitMillis);

    /**
     * Converts rows of the batch from {@code from} on to Spark's row format and returns how many.
     *
     * Writes the address of the rows, one behind the other, and of their lengths. The rows are valid until the next
     * call of this method or of {@link #next}.
     */
    static native int rows(long handle, int from, long[] addresses);

    /** Returns rows, bytes, pulls, milliseconds of waiting and bad bodies so far. */
    static native long[] counts(long handle);

    /** Returns the next offset of each queue after the first rows of the batch, in the form of a checkpoint. */
    static native String position(long handle, int rows);

    /** Frees the task, exactly once. If it did not fail, its connection may be kept for the next task. */
    static native void close(long handle, boolean isSound);

    static native long streamOpen(String[] options, String[] fields);

    static native String streamDescribe(long handle);

    /** Returns the start offsets of a stream without a checkpoint. */
    static native String streamInitial(long handle);

    /** Fixes the current end as the last offset of all later batches. */
    static native void streamAim(long handle);

    /** Returns the end offsets of the batch that begins at {@code start}; the current end if start is null. */
    static native String streamLatest(long handle, String start, boolean isLimited);

    /** Returns the last known end offsets, or null. */
    static native String streamReport(long handle);

    static native byte[][] streamPieces(long handle, String start, String end);

    /** Returns the hosts on which a task should run that reads a piece, if they are known. */
    static native String[] pieceHosts(byte[] piece);

    /** Returns a number that stays equal for the same queues in the next batch, or -1. */
    static native long pieceNumber(byte[] piece);

    /** Returns pieces without an end: {@code most} pieces, or one for each broker if there are more brokers. */
    static native byte[][] streamEndlessPieces(long handle, String start, int most);

    /** Merges the offsets that tasks report into the offsets of all queues. */
    static native String streamMerged(long handle, String[] offsets);

    /** Called when Spark has stored all rows before {@code end}. */
    static native void streamCommit(long handle, String end);

    /** Returns metrics of the backlog behind {@code consumed}, as alternating names and values. */
    static native String[] streamMetrics(long handle, String consumed);

    /** Closes and frees the stream, exactly once. */
    static native void streamClose(long handle);

    /** Writes a log line. Called from Rust. */
    static void log(boolean isWarning, String text) {
        if (isWarning) {
            LOG.warn(text);
        } else {
            LOG.info(text);
        }
    }

    /** Whether the task's thread was interrupted. Called from Rust during waits. */
    static boolean isInterrupted() {
        return Thread.currentThread().isInterrupted();
    }

    /** Loads the library from a new temporary file, since the JVM loads a file for one class loader only. */
    private static void load() {
        String name = "linux-" + architecture() + "/librmqfast_jvm.so";
        try (InputStream library = library(name)) {
            if (library == null) {
                throw new SourceException("RmqError: rocketmq-columnar has no library for "
                        + System.getProperty("os.name") + " on " + System.getProperty("os.arch")
                        + "; the Python path, engine=\"arrow\", runs there");
            }
            Path file = Files.createTempFile("rmqfast-", ".so");
            try {
                Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
            } finally {
                Files.deleteIfExists(file);     // the loaded library stays mapped
            }
        } catch (IOException | UnsatisfiedLinkError e) {     // disk full, or directory mounted noexec
            throw new SourceException("RmqError: cannot load " + name + " from "
                    + System.getProperty("java.io.tmpdir") + ": " + e
                    + "; give the JVM a directory that allows execution: -Djava.io.tmpdir=DIR in"
                    + " spark.executor.extraJavaOptions and spark.driver.extraJavaOptions");
        }
    }

    /** Opens the library: uncompressed in test jars, otherwise compressed with xz, which Spark contains. */
    private static InputStream library(String name) throws IOException {
        InputStream compressed = Native.class.getResourceAsStream(name + ".xz");
        return compressed == null ? Native.class.getResourceAsStream(name) : new XZInputStream(compressed);
    }

    private static String architecture() {
        String name = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        switch (name) {
            case "amd64":
                return "x86_64";
            case "arm64":
                return "aarch64";
            default:
                return name;
        }
    }
}
