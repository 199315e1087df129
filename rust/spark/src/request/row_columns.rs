//! The columns of a read, in the order of its schema.
use crate::error::{Error, Result};
use crate::request::decode::decode_of;
use crate::request::options::Options;
use crate::request::schema::{check_agreed, columns_of, columns_of_schema, spark_type};
use crate::request::value_type;
use arrow_schema::{DataType, Fields};
use rmqfast_store::filter::{Sql92, TagExpression};
use rmqfast_store::scan::decode::{Decode, SplitNames, VALUE, fields};
use rmqfast_store::scan::{Column, PropertyNames, ScanRequest, TimeUnit};

/// The columns of messages, and the decoding of bodies into the column `value`, if it is read.
#[derive(Clone, Debug, Default)]
pub struct RowColumns {
    pub columns: Vec<Column>,
    pub decode: Option<Decode>,
}

impl RowColumns {
    /// Returns the columns of the option `columns`. Without it, returns all columns, `value` behind the others.
    ///
    /// # Errors
    /// An unknown column or field, a column given twice, or options that do not decode.
    pub fn of_options(options: &Options) -> Result<Self> {
        match options.texts("columns") {
            Some(names) => Self::of_names(options, names),
            None => {
                let decode = decode_of(options, |whole| Ok(whole.clone()))?;
                Ok(Self { columns: Column::ALL.to_vec(), decode })
            }
        }
    }

    /// Returns the columns with these names. With the option `decode`, `value.a.b` names a field of a body.
    ///
    /// # Errors
    /// See [`of_options`](Self::of_options).
    pub fn of_names(options: &Options, names: &[String]) -> Result<Self> {
        if options.text("decode").is_none() {
            return Ok(Self { columns: columns_of(names.iter().map(String::as_str))?, decode: None });
        }
        let names = SplitNames::of(names.to_vec());
        let columns = columns_of(names.columns.iter().map(String::as_str))?;
        if names.paths.is_empty() {
            return Ok(Self { columns, decode: None });
        }
        let decode = decode_of(options, |whole| Ok(fields::select(whole, names.chosen())?))?;
        Ok(Self { columns, decode: decode.map(|decode| Decode { at: Some(names.at), ..decode }) })
    }

    /// Returns the columns of a schema of Spark. Each field is three strings: its name; its Spark type, which is JSON for
    /// `value`; and `true` if it is nullable.
    ///
    /// # Errors
    /// A column or field that does not exist or that has another type, a NOT NULL column, or no columns.
    pub fn of_schema(options: &Options, fields: &[String]) -> Result<Self> {
        let triples: Vec<&[String]> = fields.chunks_exact(3).collect();
        let at = triples.iter().position(|field| field[0] == VALUE).filter(|_| options.text("decode").is_some());
        let Some(at) = at else { return Ok(Self { columns: columns_of_schema(fields)?, decode: None }) };
        let mut others = fields.to_vec();
        let value: Vec<String> = others.drain(3 * at..3 * at + 3).collect();
        let columns = if others.is_empty() { Vec::new() } else { columns_of_schema(&others)? };
        if value[2] != "true" {
            return Err(Error::argument(format!("schema: column {VALUE}: expected nullable, got NOT NULL")));
        }
        let chosen = serde_json::from_str(&value[1]).map_err(|_| {
            let got = &value[1];
            Error::argument(format!("schema: column {VALUE}: expected a struct, got {got}"))
        })?;
        let decode = decode_of(options, |whole| value_type::choose(whole, &chosen))?;
        Ok(Self { columns, decode: decode.map(|decode| Decode { at: Some(at), ..decode }) })
    }

    /// Returns the columns of a schema that Spark may have pruned, perhaps to none; see [`of_schema`](Self::of_schema).
    ///
    /// # Errors
    /// See [`of_schema`](Self::of_schema).
    pub fn of_plan(options: &Options, fields: &[String]) -> Result<Self> {
        if fields.is_empty() { Ok(Self::default()) } else { Self::of_schema(options, fields) }
    }

    /// Builds the scan of the selected messages, without offset bounds, which depend on the store.
    ///
    /// # Errors
    /// `tags` or `sql` does not parse.
    pub fn scan_request(self, options: &Options) -> Result<ScanRequest> {
        let owned = |name| options.text(name).map(str::to_owned);
        Ok(ScanRequest {
            topic: owned("topic"),
            queue_ids: options.ids("queueIds").map(<[i32]>::to_vec),
            tags: TagExpression::parse(options.text("tags").unwrap_or("*"))?,
            sql: options.text("sql").map(Sql92::parse).transpose()?,
            keys: options.texts("keys").map(<[String]>::to_vec),
            keys_prefix: owned("keysPrefix"),
            start_time: options.number("startingTimestamp"),
            end_time: options.end_time(),
            columns: self.columns,
            decode: self.decode,
            property_names: options
                .texts("propertyNames")
                .map(|names| PropertyNames::of(names.to_vec()))
                .transpose()?,
            // Spark's timestamps are in microseconds
            time_unit: TimeUnit::Microsecond,
            broker_name: owned("brokerName"),
            verify_crc: options.flag("verifyCrc"),
            max_body_bytes: options.number("maxBodyBytes").unwrap_or_default() as usize,
            ..ScanRequest::default()
        })
    }

    /// Refuses columns that are not those of the option `columns`.
    ///
    /// # Errors
    /// The columns differ.
    pub fn check_agreed(&self, options: &Options) -> Result<()> {
        let mut wanted = options.texts("columns").map(<[String]>::to_vec);
        if let (Some(names), Some(decode)) = (&mut wanted, &self.decode) {
            let split = SplitNames::of(std::mem::take(names));
            *names = split.columns;
            if !split.paths.is_empty() {
                Decode { at: Some(split.at), ..decode.clone() }.insert(names, VALUE.to_owned());
            }
        }
        check_agreed(wanted.as_deref(), &self.names())
    }

    /// Returns names from which [`of_names`](Self::of_names) gives the same columns.
    ///
    /// # Errors
    /// The fields of `value` have another order than in the option `valueSchema`, or only some of a map's values are chosen.
    pub fn paths(&self, options: &Options) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.columns.iter().map(|column| column.name().to_owned()).collect();
        let Some(decode) = &self.decode else { return Ok(names) };
        let mut paths = Vec::new();
        add_paths(VALUE, decode.format.fields(), &mut paths);
        let at = decode.at.unwrap_or(names.len());
        names.splice(at..at, paths);
        let again = Self::of_names(options, &names)?;
        match &again.decode {
            Some(other) if other.format.fields() == decode.format.fields() => Ok(names),
            _ => {
                let text = "expected its fields in the order of the option valueSchema, and maps whole; got others";
                Err(Error::argument(format!("schema: column {VALUE}: {text}")))
            }
        }
    }

    pub fn names(&self) -> Vec<&'static str> {
        let mut names = self.columns.iter().map(|column| column.name()).collect();
        if let Some(decode) = &self.decode {
            decode.insert(&mut names, VALUE);
        }
        names
    }

    /// Returns names and Spark types, of which that of `value` is JSON.
    ///
    /// # Errors
    /// A type that Spark does not have.
    pub fn types(&self) -> Result<Vec<(&'static str, String)>> {
        let mut types = self.columns.iter().map(|column| (column.name(), spark_type(*column).to_owned())).collect();
        if let Some(decode) = &self.decode {
            decode.insert(&mut types, (VALUE, value_type::to_json(decode.format.fields())?.to_string()));
        }
        Ok(types)
    }
}

/// Adds the paths of all fields that are no structs, nor lists of structs.
fn add_paths(path: &str, fields: &Fields, paths: &mut Vec<String>) {
    for field in fields {
        let path = format!("{path}.{}", field.name());
        match field.data_type() {
            DataType::Struct(fields) => add_paths(&path, fields, paths),
            DataType::List(item) => match item.data_type() {
                DataType::Struct(fields) => add_paths(&path, fields, paths),
                _ => paths.push(path),
            },
            _ => paths.push(path),
        }
    }
}
