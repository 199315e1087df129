package org.rmqfast.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Collects the rows of a partition and passes them to Rust in blocks, in the format of rust/spark/src/sink/row.rs.
 *
 * Owns the native handle and frees it exactly once.
 */
final class TopicRows implements AutoCloseable {
    private static final int BLOCK = 256 << 10;
    private static final int LENGTH = 4;
    private static final int NULL = -1;

    private final String[] options;
    private final String[] fields;
    private final int partition;
    private final boolean prompt;
    private boolean isTaken = true;
    private boolean isClosed;
    private ByteBuffer block = buffer(BLOCK + (BLOCK >> 2));
    private long handle;

    /** If prompt, each {@link #flush} sends the rows at once. */
    TopicRows(String[] options, String[] fields, int partition, boolean prompt) {
        this.options = options;
        this.fields = fields;
        this.partition = partition;
        this.prompt = prompt;
    }

    void putNull() {
        room(LENGTH).putInt(NULL);
    }

    /** Writes the number of elements that follow. */
    void putCount(int count) {
        room(LENGTH).putInt(count);
    }

    void put(long number) {
        room(LENGTH + Long.BYTES).putInt(Long.BYTES).putLong(number);
    }

    void put(byte[] bytes) {
        room(LENGTH + (long) bytes.length).putInt(bytes.length).put(bytes);
    }

    void put(UTF8String text) {
        if (text == null) {
            putNull();
            return;
        }
        ByteBuffer room = room(LENGTH + (long) text.numBytes());
        text.writeTo(room.putInt(text.numBytes()));
    }

    /** Called after the last field of a row. */
    synchronized void endRow() {
        if (block.position() >= BLOCK) {
            waitUntilTaken();
            send();
            waitUntilTaken();
        }
    }

    /** Sends the collected rows if that needs no wait. Otherwise the next row or the end waits. */
    synchronized void flush() {
        isTaken = isTaken || handle != 0 && NativeSink.isTaken(handle);
        if (isTaken) {
            send();
        }
    }

    /** Waits until all rows are stored, and returns their counts. */
    synchronized long[] finish() {
        waitUntilTaken();
        send();
        waitUntilTaken();
        if (handle == 0) {
            return new long[5];     // a partition without rows opens no connection
        }
        long[] counts = NativeSink.finish(handle);
        while (counts == null) {
            checkTask();
            counts = NativeSink.finish(handle);
        }
        return counts;
    }

    @Override
    public synchronized void close() {
        isClosed = true;
        long given = handle;
        handle = 0;
        if (given != 0) {
            NativeSink.close(given);
        }
    }

    /** Returns the start of this month and of the next in local time, in milliseconds; message ids count from it. */
    static long[] month() {
        ZonedDateTime start = ZonedDateTime.now().withDayOfMonth(1).truncatedTo(ChronoUnit.DAYS);
        return new long[] {start.toInstant().toEpochMilli(), start.plusMonths(1).toInstant().toEpochMilli()};
    }

    private void send() {
        if (block.position() == 0 || isClosed) {    // the timer may run once more after closing
            return;
        }
        if (handle == 0) {
            // opened with the first rows, so that an empty partition needs no connection
            handle = NativeSink.open(options, fields, partition, month(), prompt);
        }
        isTaken = NativeSink.send(handle, block.array(), block.position());
        // release the large buffer of a large row, since each native call copies it
        if (block.capacity() > 4 * BLOCK) {
            block = buffer(BLOCK + (BLOCK >> 2));
        } else {
            block.clear();
        }
    }

    private void waitUntilTaken() {
        while (!isTaken) {
            checkTask();
            isTaken = NativeSink.isTaken(handle);
        }
    }

    private static void checkTask() {
        TaskContext task = TaskContext.get();
        if (task != null) {
            task.killTaskIfInterrupted();
        }
    }

    private ByteBuffer room(long bytes) {
        if (bytes > block.remaining()) {
            // doubled, so that many small rows do not copy the buffer each time
            long needed = Math.max(block.position() + bytes, 2L * block.capacity());
            int capacity = Math.toIntExact(Math.min(needed, Math.max(block.position() + bytes, Integer.MAX_VALUE - 8)));
            int used = block.position();
            block = ByteBuffer.wrap(Arrays.copyOf(block.array(), capacity)).order(ByteOrder.nativeOrder());
            block.position(used);
        }
        return block;
    }

    private static ByteBuffer buffer(int capacity) {
        return ByteBuffer.allocate(capacity).order(ByteOrder.nativeOrder());
    }
}
