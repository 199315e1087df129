//! Parses options, offsets, times and schemas.
pub mod cluster;
pub mod column_warning;
pub mod decode;
pub mod offsets;
pub mod options;
pub mod row_columns;
pub mod schema;
pub mod spark_format;
pub mod table_options;
pub mod text;
pub mod time;
pub mod value_type;
