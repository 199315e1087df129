package bench;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A source that does nothing but wait: rows that are due at a rate, each with the time when it was due. How old rows get in
 * Real-Time Mode by Spark alone.
 *   rate: rows a second of a task
 *   tasks
 */
public final class ReadyTimes implements TableProvider {
    private static final StructType ROW = new StructType().add("body", DataTypes.BinaryType);

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return ROW;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        return new ReadyTable(ROW, Set.of(TableCapability.MICRO_BATCH_READ),
            o -> () -> new Reads(o.getLong("rate", 1), o.getInt("tasks", 1)));
    }

    private record Reads(long rate, int tasks) implements Scan {
        @Override
        public StructType readSchema() {
            return ROW;
        }

        @Override
        public ColumnarSupportMode columnarSupportMode() {
            return ColumnarSupportMode.UNSUPPORTED;
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return new Stream(rate, tasks, BornAges.now());
        }
    }

    private record Stream(long rate, int tasks, long began) implements SupportsRealTimeMode, MicroBatchStream {
        @Override
        public void prepareForRealTimeMode() { }

        @Override
        public Offset initialOffset() {
            return new Counts(new long[tasks]);
        }

        @Override
        public Offset deserializeOffset(String json) {
            return new Counts(Arrays.stream(json.split(",")).mapToLong(Long::parseLong).toArray());
        }

        @Override
        public InputPartition[] planInputPartitions(Offset start) {
            long[] counts = ((Counts) start).rows;
            InputPartition[] shares = new InputPartition[tasks];
            for (int i = 0; i < tasks; i++) shares[i] = new Share(i, counts[i], rate, began);
            return shares;
        }

        @Override
        public Offset mergeOffsets(PartitionOffset[] offsets) {
            long[] counts = new long[tasks];
            for (PartitionOffset offset : offsets) counts[((Count) offset).task] = ((Count) offset).rows;
            return new Counts(counts);
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return new Readers();
        }

        /** Spark asks before each batch, though the batch goes beyond it. */
        @Override
        public Offset latestOffset() {
            long[] counts = new long[tasks];
            Arrays.fill(counts, (BornAges.now() - began) * rate / 1_000_000_000L);
            return new Counts(counts);
        }

        @Override
        public InputPartition[] planInputPartitions(Offset start, Offset end) {
            throw new UnsupportedOperationException("Real-Time Mode only");
        }

        @Override
        public void commit(Offset end) { }

        @Override
        public void stop() { }
    }

    private static final class Counts extends Offset {
        private final long[] rows;

        Counts(long[] rows) {
            this.rows = rows;
        }

        @Override
        public String json() {
            return LongStream.of(rows).mapToObj(Long::toString).collect(Collectors.joining(","));
        }
    }

    private record Count(int task, long rows) implements PartitionOffset { }

    private record Share(int task, long rows, long rate, long began) implements InputPartition { }

    private record Readers() implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new Due((Share) partition);
        }
    }

    private static final class Due implements SupportsRealTimeRead<InternalRow> {
        private final Share share;
        private long rows;

        Due(Share share) {
            this.share = share;
            this.rows = share.rows();
        }

        private long due(long row) {
            return share.began() + row * 1_000_000_000L / share.rate();
        }

        @Override
        public RecordStatus nextWithTimeout(Long startMillis, Long timeoutMillis) {
            long until = Math.min(due(rows), BornAges.now() + timeoutMillis * 1_000_000);
            for (long left = until - BornAges.now(); left > 0; left = until - BornAges.now()) LockSupport.parkNanos(left);
            boolean isDue = due(rows) <= until;
            if (isDue) rows++;
            return RecordStatus.newStatusWithoutArrivalTime(isDue);
        }

        @Override
        public boolean next() {
            throw new UnsupportedOperationException("Real-Time Mode only");
        }

        @Override
        public InternalRow get() {
            byte[] body = ByteBuffer.allocate(Long.BYTES).putLong(due(rows - 1)).array();
            return new GenericInternalRow(new Object[] {body});
        }

        @Override
        public PartitionOffset getOffset() {
            return new Count(share.task(), rows);
        }

        @Override
        public void close() { }
    }
}
