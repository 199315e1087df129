//! Converts filters from Java. Java passes values as strings, which are parsed according to the type of their column.
use rmqfast_spark::request::push_down::{Filter, Literal};
use rmqfast_spark::request::schema::spark_type;
use rmqfast_store::scan::Column;

/// Builds a filter from its parts: kind, column, and values. A Java null in the values is SQL's NULL.
pub fn of(mut parts: Vec<Option<String>>) -> Filter {
    let values = parts.split_off(parts.len().min(2));
    let mut head = parts.into_iter().map(Option::unwrap_or_default);
    let (kind, column) = (head.next().unwrap_or_default(), head.next().unwrap_or_default());
    let values = values.into_iter().map(|value| value.map(|text| literal(&column, text))).collect();
    Filter { kind, column, values }
}

fn literal(column: &str, text: String) -> Literal {
    // a value that does not parse has a type that no filterable column has
    let number = |of: fn(i64) -> Literal| text.parse().map_or(Literal::Other, of);
    match Column::of_name(column).map(spark_type) {
        Ok("string") => Literal::Text(text),
        Ok("int" | "bigint") => number(Literal::Number),
        Ok("timestamp") => number(Literal::Micros),
        _ => Literal::Other,
    }
}
