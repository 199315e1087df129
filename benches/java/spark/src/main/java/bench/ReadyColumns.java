package bench;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A source that does nothing: vectors of eight columns, or of those of the schema that is asked for, ready again and
 * again. What a batch and a stream of any source in the JVM cost Spark by themselves, where Spark makes the rows.
 *   rows: of a batch read; of each batch of a stream, which has no end
 *   body: bytes of each; about 1 MiB of them is a vector
 *   tasks
 */
public final class ReadyColumns implements TableProvider {
    private static final int VECTOR_BYTES = 1 << 20;
    private static final String ID = "7F0000011A2B18B4AAC2000000000000";
    private static final StructType EIGHT = new StructType().add("topic", DataTypes.StringType)
        .add("queue_id", DataTypes.IntegerType).add("queue_offset", DataTypes.LongType)
        .add("physical_offset", DataTypes.LongType).add("tags", DataTypes.StringType).add("keys", DataTypes.StringType)
        .add("store_timestamp", DataTypes.TimestampType).add("body", DataTypes.BinaryType);
    /** Of each thread, as the number of rows of a batch changes while it is read. */
    private static final ThreadLocal<Map<String, ColumnarBatch>> READY = ThreadLocal.withInitial(HashMap::new);

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return EIGHT;
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        return new ReadyTable(schema, Set.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ),
            o -> new Reads(schema, o.getLong("rows", 0), o.getInt("body", 0), o.getInt("tasks", 4)));
    }

    static ColumnarBatch ready(int body, StructType schema) {
        return READY.get().computeIfAbsent(body + schema.catalogString(), key -> made(body, schema));
    }

    private static ColumnarBatch made(int body, StructType schema) {
        int rows = VECTOR_BYTES / body;
        ColumnVector[] vectors = new ColumnVector[schema.length()];
        for (int i = 0; i < vectors.length; i++) {
            OnHeapColumnVector vector = new OnHeapColumnVector(rows, schema.apply(i).dataType());
            for (int row = 0; row < rows; row++) put(vector, schema.apply(i).name(), row, body);
            vectors[i] = vector;
        }
        return new ColumnarBatch(vectors, rows);
    }

    private static void put(OnHeapColumnVector vector, String column, int row, int body) {
        byte[] filled = new byte[body];
        Arrays.fill(filled, (byte) 'b');
        switch (column) {
            case "topic" -> vector.putByteArray(row, bytes("bench_topic"));
            case "queue_id" -> vector.putInt(row, row % 4);
            case "tags" -> vector.putByteArray(row, bytes(tag(row)));
            case "keys" -> vector.putByteArray(row, bytes(keys(row)));
            case "body" -> vector.putByteArray(row, filled);
            default -> putAny(vector, row);
        }
    }

    private static void putAny(OnHeapColumnVector vector, int row) {
        DataType type = vector.dataType();
        if (type instanceof MapType) {
            String[] pairs = {"KEYS", keys(row), "UNIQ_KEY", ID, "WAIT", "true", "TAGS", tag(row)};
            int first = vector.getChild(0).getElementsAppended();
            for (int i = 0; i < pairs.length; i++) {
                byte[] text = bytes(pairs[i]);
                vector.getChild(i % 2).appendByteArray(text, 0, text.length);
            }
            vector.putArray(row, first, pairs.length / 2);
        } else if (type instanceof StringType) {
            vector.putByteArray(row, bytes(ID));
        } else if (type instanceof IntegerType) {
            vector.putInt(row, row);
        } else {
            vector.putLong(row, 1_700_000_000_000_000L + row);
        }
    }

    private static String tag(int row) {
        return String.format("tag%02d", row % 100);
    }

    private static String keys(int row) {
        return String.format("tag00-%011d", row);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A scan is its own builder: there is nothing to be built. */
    private static final class Reads implements ScanBuilder, SupportsPushDownRequiredColumns, Scan, Batch {
        private final long rows;
        private final int body;
        private final int tasks;
        private StructType schema;

        Reads(StructType schema, long rows, int body, int tasks) {
            this.schema = schema;
            this.rows = rows;
            this.body = body;
            this.tasks = tasks;
        }

        @Override
        public void pruneColumns(StructType required) {
            schema = required;
        }

        @Override
        public Scan build() {
            return this;
        }

        @Override
        public StructType readSchema() {
            return schema;
        }

        @Override
        public ColumnarSupportMode columnarSupportMode() {
            return ColumnarSupportMode.SUPPORTED;
        }

        @Override
        public Batch toBatch() {
            return this;
        }

        @Override
        public InputPartition[] planInputPartitions() {
            return planned(rows);
        }

        InputPartition[] planned(long count) {
            InputPartition[] shares = new InputPartition[tasks];
            for (int i = 0; i < tasks; i++) shares[i] = new Share(count * (i + 1) / tasks - count * i / tasks);
            return shares;
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return new Readers(body, schema);
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return new Stream(this);
        }
    }

    private static final class Stream implements MicroBatchStream, SupportsAdmissionControl {
        private final Reads reads;

        Stream(Reads reads) {
            this.reads = reads;
        }

        @Override
        public Offset latestOffset() {
            throw new UnsupportedOperationException("asked with a limit");
        }

        @Override
        public Offset latestOffset(Offset start, ReadLimit limit) {
            return new Rows(((Rows) start).rows() + reads.rows);
        }

        @Override
        public ReadLimit getDefaultReadLimit() {
            return ReadLimit.maxRows(reads.rows);
        }

        @Override
        public Offset initialOffset() {
            return new Rows(0);
        }

        @Override
        public Offset deserializeOffset(String json) {
            return new Rows(Long.parseLong(json));
        }

        @Override
        public InputPartition[] planInputPartitions(Offset start, Offset end) {
            return reads.planned(((Rows) end).rows() - ((Rows) start).rows());
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return reads.createReaderFactory();
        }

        @Override
        public void commit(Offset end) { }

        @Override
        public void stop() { }
    }

    private static final class Rows extends Offset {
        private final long rows;

        Rows(long rows) {
            this.rows = rows;
        }

        long rows() {
            return rows;
        }

        @Override
        public String json() {
            return Long.toString(rows);
        }
    }

    private record Share(long rows) implements InputPartition { }

    private record Readers(int body, StructType schema) implements PartitionReaderFactory {
        @Override
        public boolean supportColumnarReads(InputPartition partition) {
            return true;
        }

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            throw new UnsupportedOperationException("columns only");
        }

        @Override
        public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
            ColumnarBatch ready = ready(body, schema);
            return new Again(ready, VECTOR_BYTES / body, ((Share) partition).rows());
        }
    }

    private static final class Again implements PartitionReader<ColumnarBatch> {
        private final ColumnarBatch ready;
        private final int capacity;
        private long left;

        Again(ColumnarBatch ready, int capacity, long rows) {
            this.ready = ready;
            this.capacity = capacity;
            this.left = rows;
        }

        @Override
        public boolean next() {
            ready.setNumRows((int) Math.min(left, capacity));
            left -= ready.numRows();
            return ready.numRows() > 0;
        }

        @Override
        public ColumnarBatch get() {
            return ready;
        }

        @Override
        public void close() { }
    }
}
