//! The row's columns as Spark types, and user schemas that select columns.
use crate::error::{Error, Result};
use crate::request::text::{hint, quote};
use rmqfast_store::scan::Column;

/// Parses column names.
///
/// # Errors
/// An unknown column, or a column given twice.
pub fn columns_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    for name in names {
        let column = column_of(name)?;
        if columns.contains(&column) {
            let twice = quote(name);
            return Err(Error::argument(format!("columns: expected each once, got [{twice}] more often")));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Parses a column name.
///
/// # Errors
pub fn column_of(name: &str) -> Result<Column> {
    Column::of_name(name).map_err(|_| {
        let all = Column::ALL.map(Column::name);
        let text = format!("unknown column {}; {}the columns are {}", quote(name), hint(name, all), all.join(", "));
        Error::UnknownColumn(text)
    })
}

/// Refuses a schema whose columns are not those of the option `columns`.
///
/// # Errors
/// The columns differ.
pub fn check_agreed(wanted: Option<&[String]>, columns: &[&str]) -> Result<()> {
    let Some(wanted) = wanted.filter(|wanted| *wanted != columns) else { return Ok(()) };
    let (wanted, got) = (wanted.join(", "), columns.join(", "));
    Err(Error::argument(format!("schema: expected the columns of the option columns, {wanted}, got {got}")))
}

/// Returns the columns of a user's schema. Each field is three strings: its name, its Spark type, and `true` if it is
/// nullable.
///
/// # Errors
/// An unknown column, a type that differs from the column's, a NOT NULL column, or no columns.
pub fn columns_of_schema(fields: &[String]) -> Result<Vec<Column>> {
    let all = Column::ALL.map(Column::name).join(", ");
    if fields.is_empty() {
        return Err(Error::argument(format!("schema: expected at least one column of {all}, got none")));
    }
    for field in fields.chunks_exact(3) {
        // Java passes fields as flat triples of strings
        let [name, kind, nullable] = field else { continue };
        let column = column_of(name)?;
        let expected = spark_type(column);
        if expected != kind {
            return Err(Error::argument(format!("schema: column {name}: expected {expected}, got {kind}")));
        }
        // Spark would trust NOT NULL and skip its null checks
        if nullable != "true" {
            let text = format!("schema: column {name}: expected nullable, as every column is, got NOT NULL");
            return Err(Error::argument(text));
        }
    }
    columns_of(fields.chunks_exact(3).map(|field| field[0].as_str()))
}

/// Returns a column's Spark type in the form of `DataType.catalogString`.
pub fn spark_type(column: Column) -> &'static str {
    match column {
        Column::QueueOffset | Column::PhysicalOffset | Column::PreparedTransactionOffset => "bigint",
        Column::QueueId
        | Column::Flag
        | Column::SysFlag
        | Column::ReconsumeTimes
        | Column::StoreSize
        | Column::BodyCrc => "int",
        // Spark shows timestamps in the session's time zone
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
        assert_eq!(error("tags int true"), "schema: column tags: expected string, got int");
        assert!(error("tags string false").ends_with("expected nullable, as every column is, got NOT NULL"));
        assert!(error("tag string true").starts_with("unknown column 'tag'; did you mean tags"));
    }
}
