package org.rmqfast.spark;

import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/** The driver's side of a stream. Rust plans its batches. Owns the native handle and frees it exactly once. */
class SourceStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    /** Stands for the limits in the options, which Rust has parsed. */
    private static final class AsOptionsSay implements ReadLimit {}

    private final PartitionReaderFactory factory;
    private final String description;
    private long handle;

    SourceStream(String[] options, String[] fields, PartitionReaderFactory factory) {
        this.factory = factory;
        handle = Native.streamOpen(options, fields);
        description = Native.streamDescribe(handle);
    }

    @Override
    public final Offset initialOffset() {
        return new StreamOffset(asked(() -> Native.streamInitial(handle())));
    }

    @Override
    public final Offset deserializeOffset(String json) {
        return new StreamOffset(json);
    }

    @Override
    public final ReadLimit getDefaultReadLimit() {
        return new AsOptionsSay();
    }

    @Override
    public final void prepareForTriggerAvailableNow() {
        asked(() -> {
            Native.streamAim(handle());
            return null;
        });
    }

    /** Not called by Spark, which passes a limit because this stream has limits. */
    @Override
    public final Offset latestOffset() {
        return latestOffset(null, ReadLimit.allAvailable());
    }

    @Override
    public final Offset latestOffset(Offset start, ReadLimit limit) {
        boolean isLimited = !(limit instanceof ReadAllAvailable);
        return new StreamOffset(asked(() -> Native.streamLatest(handle(), StreamOffset.text(start), isLimited)));
    }

    @Override
    public final Offset reportLatestOffset() {
        // Spark may ask for the last progress after another thread has stopped the stream
        String latest = asked(() -> handle == 0 ? null : Native.streamReport(handle));
        return latest == null ? null : new StreamOffset(latest);
    }

    @Override
    public final InputPartition[] planInputPartitions(Offset start, Offset end) {
        return Piece.ofStream(asked(() -> Native.streamPieces(handle(), start.json(), end.json())));
    }

    @Override
    public final PartitionReaderFactory createReaderFactory() {
        return factory;
    }

    @Override
    public final void commit(Offset end) {
        asked(() -> {
            // Real-Time Mode commits once more after the stop; an error there would keep the query in the list of
            // active queries
            if (handle != 0) {
                Native.streamCommit(handle, end.json());
            }
            return null;
        });
    }

    @Override
    public final Map<String, String> metrics(Optional<Offset> latestConsumedOffset) {
        String consumed = latestConsumedOffset.map(Offset::json).orElse(null);
        String[] pairs = asked(() -> handle == 0 ? new String[0] : Native.streamMetrics(handle, consumed));
        Map<String, String> metrics = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            metrics.put(pairs[i], pairs[i + 1]);
        }
        return metrics;
    }

    @Override
    public final synchronized void stop() {
        // cleared first, so that a second call does not free the stream again
        long given = handle;
        handle = 0;
        if (given != 0) {
            Native.streamClose(given);
        }
    }

    /** Returns the source's name for a query's progress, also after the stream is stopped. */
    @Override
    public final String toString() {
        return "rocketmq-columnar[" + description + "]";
    }

    final long handle() {
        if (handle == 0) {
            throw new IllegalStateException("the stream is stopped");
        }
        return handle;
    }

    /** Runs one native call at a time. On an interrupt throws the exception that Spark expects of a stopped stream. */
    final synchronized <T> T asked(Supplier<T> question) {
        try {
            return question.get();
        } catch (SourceException e) {
            if (Thread.currentThread().isInterrupted()) {
                ClosedByInterruptException interrupted = new ClosedByInterruptException();
                interrupted.initCause(e);
                throw new UncheckedIOException(interrupted);
            }
            throw e;
        }
    }
}
