//! The decoding of bodies that the options ask for.
use crate::error::{Error, Result};
use crate::request::options::{Options, Pairs, replace_options};
use crate::request::spark_format::in_types_of_spark;
use arrow_schema::Fields;
use rmqfast_store::file::local_path;
use rmqfast_store::scan::decode::{BodySchema, Decode, DecodeArguments};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum bytes of a file with a schema.
const MAX_SCHEMA_BYTES: u64 = 1 << 20;

/// Returns the decoding that the options ask for, of the fields that `choose` returns. `None` without the option `decode`.
///
/// # Errors
/// A schema that does not parse or has types that Spark lacks, or options that do not fit each other.
pub fn decode_of(options: &Options, choose: impl FnOnce(&Fields) -> Result<Fields>) -> Result<Option<Decode>> {
    let Some(decode) = options.text("decode") else { return Ok(None) };
    let text = |name, usual: &str| options.text(name).unwrap_or(usual).to_owned();
    let arguments = DecodeArguments {
        decode: decode.to_owned(),
        schema: options.text("valueSchema").map(|text| BodySchema::Text(text.to_owned())),
        framing: text("framing", "none"),
        on_error: text("onDecodeError", "null"),
        schema_id: options.number("schemaId").map(i64::cast_unsigned),
    };
    let whole = in_types_of_spark(&arguments.build().map_err(of_option)?)?;
    let fields = choose(whole.format.fields())?;
    Ok(Some(whole.with_fields(&fields)?))
}

/// Names the option in place of the argument.
fn of_option(error: rmqfast_store::Error) -> Error {
    match error {
        rmqfast_store::Error::Invalid { what, expected, got } => {
            let name = match what {
                "schema" => "valueSchema",
                "schema_id" => "schemaId",
                "on_error" => "onDecodeError",
                other => other,
            };
            Error::argument(format!("option {name}: expected {expected}, got {got}"))
        }
        other => other.into(),
    }
}

/// Replaces the option `valueSchema` by the text of the file that it names, which executors may not have. Any other text
/// stays.
///
/// # Errors
/// The file cannot be read, is too long, or is not UTF-8.
pub fn with_schema_text(pairs: &[(String, String)]) -> Result<Pairs> {
    let value = |name: &str| pairs.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, text)| text);
    let Some(given) = value("valueSchema") else { return Ok(pairs.to_vec()) };
    let is_avro = value("decode").is_some_and(|format| format == "avro");
    // no schema of Avro that a body can have begins otherwise
    if is_avro && given.trim_start().starts_with(['{', '[']) {
        return Ok(pairs.to_vec());
    }
    let path = match local_path(OsStr::new(given)) {
        Ok(path) if is_avro || path.is_file() => path,
        Err(expected) if is_avro => {
            return Err(Error::argument(format!(
                "option valueSchema: expected a schema of Avro, or {expected}, got {given:?}"
            )));
        }
        _ => return Ok(pairs.to_vec()),
    };
    Ok(replace_options(pairs, &[("valueSchema", read_schema(&path)?)]))
}

fn read_schema(path: &Path) -> Result<String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_SCHEMA_BYTES + 1).read_to_end(&mut text));
    read.map_err(|error| rmqfast_store::Error::io(path, error))?;
    if text.len() as u64 > MAX_SCHEMA_BYTES {
        let expected = format!("a file of at most {MAX_SCHEMA_BYTES} bytes, got a longer one: {}", path.display());
        return Err(Error::argument(format!("option valueSchema: expected {expected}")));
    }
    String::from_utf8(text).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::argument(format!("option valueSchema: expected UTF-8, got another byte at {at} of {}", path.display()))
    })
}
