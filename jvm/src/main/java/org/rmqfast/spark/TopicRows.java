package org.rmqfast.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Rows of a partition on their way to Rust: field behind field, many rows a call. rust/spark/src/sink/row.rs says how they
 * stand. Alone holds the handle, gives it up once.
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

    /** Sends with each {@link #flush} if prompt. */
    TopicRows(String[] options, String[] fields, int partition, boolean prompt) {
        this.options = options;
        this.fields = fields;
        this.partition = partition;
        this.prompt = prompt;
    }

    void putNull() {
        room(LENGTH).putInt(NULL);
    }

    /** The number of texts that follow. */
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

    /** All fields of a row are there. */
    synchronized void endRow() {
        if (block.position() >= BLOCK) {
            waitUntilTaken();
            send();
            waitUntilTaken();
        }
    }

    /** Sends what there is, unless it would have to wait for long: then the next row, or the end, waits. */
    synchronized void flush() {
        isTaken = isTaken || handle != 0 && NativeSink.isTaken(handle);
        if (isTaken) {
            send();
        }
    }

    /** Waits until all rows are stored. */
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

    /** When this month began here, and when the next one does: ids of messages count from there. */
    static long[] month() {
        ZonedDateTime start = ZonedDateTime.now().withDayOfMonth(1).truncatedTo(ChronoUnit.DAYS);
        return new long[] {start.toInstant().toEpochMilli(), start.plusMonths(1).toInstant().toEpochMilli()};
    }

    private void send() {
        if (block.position() == 0 || isClosed) {    // a timer may come once more
            return;
        }
        if (handle == 0) {
            handle = NativeSink.open(options, fields, partition, month(), prompt);
        }
        isTaken = NativeSink.send(handle, block.array(), block.position());
        // one large row must not make each further call copy as much
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
