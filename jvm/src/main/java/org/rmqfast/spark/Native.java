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

/** The functions of rust/jvm. Each throws {@link SourceException}. */
final class Native {
    private static final Logger LOG = LoggerFactory.getLogger("rmqfast.spark");

    static {
        load();
    }

    private Native() {}

    /** The library serves all classes here; whoever is called first makes this one load it. */
    static void ensureLoaded() {}

    /** Whether options name a live cluster, not a store directory. */
    static native boolean isTopic(String[] options);

    /** Panics: a test of a build asks whether that is an exception on its platform. */
    static native boolean panic(String text);

    /** Names and types, in turns, of the columns that the options ask for. */
    static native String[] row(String[] options);

    /** The options with all that depends on the store as it now is; fields are name, type, nullable. */
    static native String[] resolve(String[] options, String[] fields);

    /** Which filters the scan does itself; a filter is kind, column, values. */
    static native boolean[] push(String[] options, String[][] filters);

    /** Counts known from the queues alone, or null: messages, 1 if there are any, least and largest queue offset. */
    static native long[] listed(String[] options, String[][] filters);

    /** Describes a read for people. */
    static native String describe(String[] options, String[][] filters);

    /** Pieces, as {@link #open} takes them; so many cores will read. */
    static native byte[][] plan(String[] options, String[] columns, String[][] filters, int cores);

    /** Begins to read a piece, and what is behind it for the next one, if it {@code readsAhead}. */
    static native long open(String[] options, String[] columns, String[][] filters, byte[] piece, long limit,
            boolean isRepeated, boolean readsAhead);

    /** Fills the next batch and writes where its arrays are; rows, 0 where none came within the wait, or -1 at the end. */
    static native long next(long handle, long[] addresses, long waitMillis);

    /**
     * Makes Spark's rows of those of the batch from {@code from} on: how many. Writes where they are, one behind the other, and
     * where the length of each is; they stand until the next call of this or of {@link #next}.
     */
    static native int rows(long handle, int from, long[] addresses);

    /** Rows, bytes, pulls and milliseconds of waiting so far. */
    static native long[] counts(long handle);

    /** Next offset of each queue after so many rows of the batch, as offsets of a checkpoint. */
    static native String position(long handle, int rows);

    /** Frees what {@link #open} gave, once; a task that did not fail may leave its connection to the next one. */
    static native void close(long handle, boolean isSound);

    /** Begins a stream. */
    static native long streamOpen(String[] options, String[] columns);

    /** Describes a stream for people. */
    static native String streamDescribe(long handle);

    /** Start offsets of a stream without a checkpoint. */
    static native String streamInitial(long handle);

    /** From now on no batch goes beyond what there is now. */
    static native void streamAim(long handle);

    /** End offsets of the batch that begins at {@code start}; the end if there is no start. */
    static native String streamLatest(long handle, String start, boolean isLimited);

    /** The last end that is known, or null. */
    static native String streamReport(long handle);

    /** The pieces of a batch. */
    static native byte[][] streamPieces(long handle, String start, String end);

    /** A number that the next batch's piece of the same queues has, too, or -1. */
    static native long pieceNumber(byte[] piece);

    /** Pieces without an end, so many where there are no more brokers. */
    static native byte[][] streamEndlessPieces(long handle, String start, int most);

    /** The offsets of all queues, of which each task said its own. */
    static native String streamMerged(long handle, String[] offsets);

    /** All before {@code end} is stored. */
    static native void streamCommit(long handle, String end);

    /** Lag of a query that read as far as {@code consumed}: names and values, in turns. */
    static native String[] streamMetrics(long handle, String consumed);

    /** Frees what {@link #streamOpen} gave, once. */
    static native void streamClose(long handle);

    /** Called from Rust. */
    static void log(boolean isWarning, String text) {
        if (isWarning) {
            LOG.warn(text);
        } else {
            LOG.info(text);
        }
    }

    /** Called from Rust, while it waits. */
    static boolean isInterrupted() {
        return Thread.currentThread().isInterrupted();
    }

    /** A file of its own for each class loader: the JVM loads a file for one of them only. */
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
                Files.deleteIfExists(file);     // what is loaded stays mapped
            }
        } catch (IOException | UnsatisfiedLinkError e) {     // a full disk; a directory that does not allow to execute
            throw new SourceException("RmqError: cannot load " + name + " from "
                    + System.getProperty("java.io.tmpdir") + ": " + e);
        }
    }

    /** Plain in a jar for tests, compressed in one that is shipped: Spark itself has xz. */
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
