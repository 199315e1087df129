package org.rmqfast.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** The class for {@code spark.sql.extensions}. In Spark 4 and newer it lets Rust make rows from batches. */
public final class RocketMQExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        extensions.injectColumnar((SparkSession session) -> new ColumnarRule() {
            @Override
            public Rule<SparkPlan> postColumnarTransitions() {
                return new RustRowsRule();
            }
        });
        return BoxedUnit.UNIT;
    }
}
