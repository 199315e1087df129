//! The row as Spark types, and the schemas that choose columns of it.
use crate::failure::{Failure, Result};
use rmqfast_spark::store_read::{column_of, columns_of};
use rmqfast_store::scan::Column;

/// The columns that a schema of the user's asks for: fields of name, Spark type and `true` where it may be null.
///
/// # Errors
/// A column that the row does not have, one of another type than the row's, NOT NULL, or none at all.
pub fn columns_of_schema(fields: &[String]) -> Result<Vec<Column>> {
    let all = Column::ALL.map(Column::name).join(", ");
    if fields.is_empty() {
        return Err(Failure::argument(format!("schema: expected at least one column of {all}, got none")));
    }
    for field in fields.chunks_exact(3) {
        let [name, kind, nullable] = field else { continue };
        let column = column_of(name)?;
        let wanted = spark_type(column);
        if wanted != kind {
            return Err(Failure::argument(format!("schema: column {name}: expected {wanted}, got {kind}")));
        }
        if nullable != "true" {
            let text = format!("schema: column {name}: expected nullable, as every column is, got NOT NULL");
            return Err(Failure::argument(text));
        }
    }
    Ok(columns_of(fields.chunks_exact(3).map(|field| field[0].as_str()))?)
}

/// The name of a column's type in Spark, as `DataType.catalogString` gives it.
pub fn spark_type(column: Column) -> &'static str {
    match column {
        Column::QueueOffset | Column::PhysicalOffset | Column::PreparedTransactionOffset => "bigint",
        Column::QueueId
        | Column::Flag
        | Column::SysFlag
        | Column::ReconsumeTimes
        | Column::StoreSize
        | Column::BodyCrc => "int",
        Column::BornTimestamp | Column::StoreTimestamp => "timestamp",
        Column::Body => "binary",
        Column::Properties => "map<string,string>",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_the_user_chooses_columns_and_no_other_types() {
        let fields = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let columns = columns_of_schema(&fields("tags string true queue_id int true")).expect("columns");
        assert_eq!(columns, [Column::Tags, Column::QueueId]);
        let error = |text| columns_of_schema(&fields(text)).expect_err(text).to_string();
        assert_eq!(error("tags int true"), "ArgumentError: schema: column tags: expected string, got int");
        assert!(error("tags string false").ends_with("expected nullable, as every column is, got NOT NULL"));
        assert!(error("tag string true").starts_with("UnknownColumnError: unknown column 'tag'; did you mean tags"));
    }
}
