package org.rmqfast.spark;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;

/** Where rows of all columns are wanted of a scan of ours, Rust makes them. */
final class RustRowsRule extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
        return replaced(plan, false);
    }

    /**
     * Code that Spark generates for a parent reads just the vectors that it needs, and makes no row: there all stays as it is.
     */
    private static SparkPlan replaced(SparkPlan plan, boolean isWithinCode) {
        if (plan instanceof ColumnarToRowExec transition) {
            return !isWithinCode && givesBatchesOfOurs(transition.child()) ? new RustRowsExec(transition.child()) : plan;
        }
        boolean makesCode = plan instanceof CodegenSupport code && code.supportCodegen();
        return plan.mapChildren(child -> replaced(child, makesCode));
    }

    /** A scan, or a union of some, which hands batches on as they are. */
    private static boolean givesBatchesOfOurs(SparkPlan plan) {
        if (plan instanceof UnionExec union) {
            return union.children().forall(RustRowsRule::givesBatchesOfOurs);
        }
        return plan instanceof DataSourceV2ScanExecBase exec && exec.scan() instanceof SourceScan;
    }
}
