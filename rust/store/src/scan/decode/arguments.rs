//! The arguments that decode bodies, as users give them.
use super::avro::Avro;
use super::ddl;
use super::format::{BodyFormat, Decode, VALUE};
use super::framing::{Framing, SchemaId};
use super::json::Json;
use crate::{Error, Result};
use arrow_schema::Fields;
use std::sync::Arc;

/// A schema of bodies: DDL or JSON of Avro, or fields.
#[derive(Clone, Debug)]
pub enum BodySchema {
    Text(String),
    Fields(Fields),
}

#[derive(Clone, Debug)]
pub struct DecodeArguments {
    pub decode: String,
    pub schema: Option<BodySchema>,
    pub framing: String,
    pub on_error: String,
    pub schema_id: Option<SchemaId>,
}

impl DecodeArguments {
    /// Checks the arguments. Returns the decoding of all fields.
    pub fn build(&self) -> Result<Decode> {
        let framing = Framing::of_name(&self.framing)?;
        let (fails, lists_all) = match self.on_error.as_str() {
            "null" => (false, false),
            "fail" => (true, false),
            "list" => (false, true),
            other => return Err(Error::invalid("on_error", "'null', 'list' or 'fail'", format!("'{other}'"))),
        };
        let schema =
            self.schema.as_ref().ok_or_else(|| Error::invalid("schema", "the schema of the bodies", "None"))?;
        let (format, own_id): (Arc<dyn BodyFormat>, _) = match (self.decode.as_str(), schema) {
            ("json", BodySchema::Text(text)) => (Arc::new(Json::new(&ddl::parse(text)?, None)?), None),
            ("json", BodySchema::Fields(fields)) => (Arc::new(Json::new(fields, None)?), None),
            ("avro", BodySchema::Text(text)) => {
                let avro = Avro::new(text, None)?;
                let id = match framing {
                    Framing::SingleObject => Some(avro.fingerprint()),
                    // Bytes of another schema could be decoded to anything.
                    Framing::Confluent if self.schema_id.is_none() => {
                        let expected = "the id that the registry has for the schema, for Avro with framing='confluent'";
                        return Err(Error::invalid("schema_id", expected, "None"));
                    }
                    _ => None,
                };
                (Arc::new(avro), id)
            }
            ("avro", BodySchema::Fields(_)) => {
                return Err(Error::invalid("schema", "the text of an .avsc, or a path to one", "an Arrow schema"));
            }
            (other, _) => return Err(Error::invalid("decode", "'json' or 'avro'", format!("'{other}'"))),
        };
        if self.schema_id.is_some() && framing != Framing::Confluent {
            return Err(Error::invalid(
                "schema_id",
                "framing='confluent' with it",
                format!("framing='{}'", self.framing),
            ));
        }
        Ok(Decode { format, framing, schema_id: own_id.or(self.schema_id), fails, lists_all, at: None })
    }
}

/// The names of a request's columns, split into those of messages and those of fields of `value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitNames {
    pub columns: Vec<String>,
    /// The paths of fields in `value`. An empty path stands for all of it. No path means that it is not asked for.
    pub paths: Vec<String>,
    /// Position of the first name of `value` among the columns.
    pub at: usize,
}

impl SplitNames {
    pub fn of(names: Vec<String>) -> Self {
        let mut split = Self::default();
        for name in names {
            match path(&name) {
                Some(path) => {
                    if split.paths.is_empty() {
                        split.at = split.columns.len();
                    }
                    split.paths.push(path.to_owned());
                }
                None => split.columns.push(name),
            }
        }
        split
    }

    /// Returns the paths that choose fields. `None` for all fields.
    pub fn chosen(&self) -> Option<&[String]> {
        Some(&self.paths[..]).filter(|paths| !paths.iter().any(String::is_empty))
    }
}

/// Returns the path in `value` that a column's name stands for, which is empty for all of `value`.
fn path(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(VALUE)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_value_are_split_from_those_of_columns() {
        let split = |names: &[&str]| SplitNames::of(names.iter().map(|name| (*name).to_owned()).collect());
        let few = split(&["topic", "value.a.b", "valued", "value.c"]);
        assert_eq!(few.columns, ["topic", "valued"]);
        assert_eq!((few.chosen(), few.at), (Some(&["a.b".to_owned(), "c".to_owned()][..]), 1));
        let all = split(&["value.a", "value"]);
        assert_eq!((all.paths.len(), all.chosen(), all.at), (2, None, 0));
        assert!(split(&["topic"]).paths.is_empty());
    }
}
