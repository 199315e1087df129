package org.rmqfast.spark;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;

/** Replaces {@code ColumnarToRow} above a scan of this source by {@link RustRowsExec}. */
final class RustRowsRule extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
        return replaced(plan, false);
    }

    /**
     * Replaces the nodes of a plan.
     *
     * A parent with generated code reads only the vectors that it needs and makes no rows, so below it the plan stays
     * unchanged.
     */
    private static SparkPlan replaced(SparkPlan plan, boolean isWithinCode) {
        if (plan instanceof ColumnarToRowExec) {
            SparkPlan batches = ((ColumnarToRowExec) plan).child();
            return !isWithinCode && givesBatchesOfOurs(batches) ? new RustRowsExec(batches) : plan;
        }
        boolean makesCode = plan instanceof CodegenSupport && ((CodegenSupport) plan).supportCodegen();
        return plan.mapChildren(child -> replaced(child, makesCode));
    }

    /** Whether the plan is a scan of this source without decoded bodies, of which Rust makes no rows, or a union of such scans, which pass batches on unchanged. */
    private static boolean givesBatchesOfOurs(SparkPlan plan) {
        if (plan instanceof UnionExec) {
            return ((UnionExec) plan).children().forall(RustRowsRule::givesBatchesOfOurs);
        }
        if (!(plan instanceof DataSourceV2ScanExecBase)) {
            return false;
        }
        Scan scan = ((DataSourceV2ScanExecBase) plan).scan();
        return scan instanceof SourceScan && !((SourceScan) scan).isDecoded();
    }
}
