package org.rmqfast.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;

/** A stream that also supports Real-Time Mode. Loaded only in Spark 4.1 and newer, which have the interface. */
final class RealTimeStream extends SourceStream implements SupportsRealTimeMode {
    private final Runnable prepared;

    RealTimeStream(String[] options, String[] fields, PartitionReaderFactory factory, Runnable prepared) {
        super(options, fields, factory);
        this.prepared = prepared;
    }

    @Override
    public void prepareForRealTimeMode() {
        prepared.run();
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start) {
        // all tasks run at once, and each needs a core
        int cores = SparkContext.getOrCreate().defaultParallelism();
        return Piece.ofStream(asked(() -> Native.streamEndlessPieces(handle(), start.json(), cores)));
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] offsets) {
        String[] texts = new String[offsets.length];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = ((RealTimeReader.Position) offsets[i]).json();
        }
        return new StreamOffset(asked(() -> Native.streamMerged(handle(), texts)));
    }
}
