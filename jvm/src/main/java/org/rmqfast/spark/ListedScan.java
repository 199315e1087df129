package org.rmqfast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A scan that answers an aggregation from the queues alone: the count of messages, and the least or largest queue
 * offset.
 */
final class ListedScan implements LocalScan {
    private final AggregateFunc[] asked;
    private final long[] listed;

    ListedScan(AggregateFunc[] asked, long[] listed) {
        this.asked = asked;
        this.listed = listed;
    }

    /** Whether the queues alone can answer all these aggregations. */
    static boolean canTell(AggregateFunc[] asked) {
        for (AggregateFunc one : asked) {
            boolean known = one instanceof CountStar
                    || one instanceof Min && isQueueOffset(((Min) one).column())
                    || one instanceof Max && isQueueOffset(((Max) one).column());
            if (!known) {
                return false;
            }
        }
        return true;
    }

    private static boolean isQueueOffset(Expression column) {
        return column instanceof NamedReference
                && String.join(".", ((NamedReference) column).fieldNames()).equals("queue_offset");
    }

    @Override
    public StructType readSchema() {
        StructType schema = new StructType();
        for (int i = 0; i < asked.length; i++) {
            schema = schema.add("listed_" + i, DataTypes.LongType, true);
        }
        return schema;
    }

    @Override
    public InternalRow[] rows() {
        Object[] values = new Object[asked.length];
        for (int i = 0; i < asked.length; i++) {
            if (asked[i] instanceof CountStar) {
                values[i] = listed[0];
            } else if (listed[1] == 1) {
                values[i] = asked[i] instanceof Min ? listed[2] : listed[3];
            }
        }
        return new InternalRow[] {new GenericInternalRow(values)};
    }

    @Override
    public String description() {
        return "rocketmq-columnar, told by queues: " + java.util.Arrays.toString(asked);
    }
}
