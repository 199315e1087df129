package org.rmqfast.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** The functions of rust/jvm. Each throws {@link StoreException}. */
final class Native {
    static {
        load();
    }

    private Native() {}

    /** Names and types, in turns, of the columns that the options ask for. */
    static native String[] row(String[] options);

    /** The options with all that depends on the store as it now is; fields are name, type, nullable. */
    static native String[] resolve(String[] options, String[] fields);

    /** Which filters the scan does itself; a filter is kind, column, values. */
    static native boolean[] push(String[] options, String[][] filters);

    /** What the queues alone tell, or null: messages, 1 if there are any, least and largest queue offset. */
    static native long[] listed(String[] options, String[][] filters);

    /** Four numbers for each partition, as {@link #open} takes them; so many cores will read. */
    static native long[] plan(String[] options, String[] columns, String[][] filters, int cores);

    /** Begins to read a partition. */
    static native long open(String[] options, String[] columns, String[][] filters, long[] partition, long limit);

    /** Fills the next batch and writes where its arrays are; rows, or -1 at the end. */
    static native long next(long handle, long[] addresses);

    /** What shall be logged of a partition that was read to its end, or null. */
    static native String warning(long handle);

    /** Frees what {@link #open} gave, once. */
    static native void close(long handle);

    /** A file of its own for each class loader: the JVM loads a file for one of them only. */
    private static void load() {
        String name = "linux-" + architecture() + "/librmqfast_jvm.so";
        try (InputStream library = Native.class.getResourceAsStream(name)) {
            if (library == null) {
                throw new StoreException("RmqError: rocketmq-columnar has no library for "
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
            throw new StoreException("RmqError: cannot load " + name + " from "
                    + System.getProperty("java.io.tmpdir") + ": " + e);
        }
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
