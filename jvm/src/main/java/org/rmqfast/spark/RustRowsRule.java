package org.rmqfast.spark;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;

/** Lets Rust make the rows of a scan of this source whose columns all become rows. */
final class RustRowsRule extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
        return replaced(plan, false);
    }

    /**
     * Code that Spark generates for a parent reads just the vectors that it needs, and makes no row: there all stays as it is.
     */
    private static SparkPlan replaced(SparkPlan plan, boolean isWithinCode) {
        if (plan instanceof ColumnarToRowExec) {
            SparkPlan batches = ((ColumnarToRowExec) plan).child();
            return !isWithinCode && givesBatchesOfOurs(batches) ? new RustRowsExec(batches) : plan;
        }
        boolean makesCode = plan instanceof CodegenSupport && ((CodegenSupport) plan).supportCodegen();
        return plan.mapChildren(child -> replaced(child, makesCode));
    }

    /** A scan, or a union of some, which hands batches on as they are. */
    private static boolean givesBatchesOfOurs(SparkPlan plan) {
        if (plan instanceof UnionExec) {
            return ((UnionExec) plan).children().forall(RustRowsRule::givesBatchesOfOurs);
        }
        return plan instanceof DataSourceV2ScanExecBase && ((DataSourceV2ScanExecBase) plan).scan() instanceof SourceScan;
    }
}
