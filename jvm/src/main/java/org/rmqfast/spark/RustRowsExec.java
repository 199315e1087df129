package org.rmqfast.spark;

import java.util.Collections;
import java.util.LinkedHashMap;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Replaces Spark's {@code ColumnarToRow}: Rust converts the rows, many at a time. Its metrics have the same names. */
public final class RustRowsExec extends SparkPlan {
    private static final long serialVersionUID = 1;

    private final SparkPlan child;
    private final SQLMetric rows = SQLMetrics.createMetric(sparkContext(), "number of output rows");
    private final SQLMetric batches = SQLMetrics.createMetric(sparkContext(), "number of input batches");

    /** Public because Spark copies plans by their constructor. */
    public RustRowsExec(SparkPlan child) {
        this.child = child;
    }

    @Override
    public RDD<InternalRow> doExecute() {
        SQLMetric rowMetric = rows;
        SQLMetric batchMetric = batches;
        int fields = output().size();
        return child.executeColumnar().toJavaRDD()
                .mapPartitions(given -> (java.util.Iterator<InternalRow>) new RustRowIterator(given, fields, rowMetric, batchMetric))
                .rdd();
    }

    @Override
    public Seq<SparkPlan> children() {
        return CollectionConverters.asScala(Collections.singletonList(child)).toList();
    }

    @Override
    public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
        return new RustRowsExec(children.apply(0));
    }

    @Override
    public Seq<Attribute> output() {
        return child.output();
    }

    @Override
    public Partitioning outputPartitioning() {
        return child.outputPartitioning();
    }

    @Override
    public Seq<SortOrder> outputOrdering() {
        return child.outputOrdering();
    }

    @Override
    public Map<String, SQLMetric> metrics() {
        java.util.Map<String, SQLMetric> metrics = new LinkedHashMap<>();
        metrics.put("numOutputRows", rows);
        metrics.put("numInputBatches", batches);
        return Map.from(CollectionConverters.asScala(metrics));
    }

    @Override
    public int productArity() {
        return 1;
    }

    @Override
    public Object productElement(int n) {
        return child;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof RustRowsExec;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RustRowsExec && child.equals(((RustRowsExec) other).child);
    }

    @Override
    public int hashCode() {
        return child.hashCode();
    }
}
