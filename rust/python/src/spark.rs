//! Exposes options and offsets of Spark's read requests to the Python data source.
use crate::error::spark;
use crate::request::PyScanRequest;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rmqfast_spark::request::offsets::{Bounds, Queues, StoreOffsets};
use rmqfast_spark::request::options::{Kind, Options, Pairs, Value};
use rmqfast_spark::request::row_columns::RowColumns;
use rmqfast_spark::request::{cluster, decode, time};
use rmqfast_spark::store::brokers::StoreOptions;
use std::collections::HashMap;

#[pyclass(frozen, module = "rmqfast._native._rmqfast")]
pub struct SparkOptions {
    options: Options,
}

#[pymethods]
impl SparkOptions {
    #[new]
    fn new(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options::of(Kind::of_name(kind).map_err(spark)?, &pairs(options)?);
        Ok(Self { options: options.map_err(spark)? })
    }

    #[staticmethod]
    fn names(kind: &str) -> PyResult<Vec<&'static str>> {
        Ok(Options::names(Kind::of_name(kind).map_err(spark)?))
    }

    #[staticmethod]
    fn arguments(kind: &str) -> PyResult<Vec<(&'static str, &'static str)>> {
        Ok(Options::arguments(Kind::of_name(kind).map_err(spark)?))
    }

    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        for (argument, value) in self.options.values() {
            values.set_item(argument, value.map(|value| to_object(py, value)).transpose()?)?;
        }
        Ok(values)
    }

    #[getter]
    fn begin(&self) -> String {
        self.options.begin()
    }

    /// Returns the names and Spark types of the columns that the options select.
    fn row(&self) -> PyResult<Vec<(&'static str, String)>> {
        RowColumns::of_options(&self.options).and_then(|row| row.types()).map_err(spark)
    }

    /// Returns the columns of a user's schema, in which paths name the fields of `value`. Each field is a name, a type, and
    /// whether it may be null.
    fn columns_of_schema(&self, fields: Vec<(String, String, bool)>) -> PyResult<Vec<String>> {
        let fields: Vec<String> =
            fields.into_iter().flat_map(|(name, kind, null)| [name, kind, null.to_string()]).collect();
        let row = RowColumns::of_schema(&self.options, &fields).map_err(spark)?;
        row.check_agreed(&self.options).map_err(spark)?;
        row.paths(&self.options).map_err(spark)
    }

    fn are_offsets_whole(&self) -> PyResult<bool> {
        Ok(StoreOffsets::of(&self.options).map_err(spark)?.are_whole())
    }

    fn offset_bounds(&self, queues: Queues) -> PyResult<(Bounds, Bounds)> {
        StoreOffsets::of(&self.options).and_then(|offsets| offsets.bounds(&queues)).map_err(spark)
    }
}

#[pyfunction]
pub fn names_a_cluster(options: &Bound<'_, PyDict>) -> PyResult<bool> {
    Ok(rmqfast_spark::request::options::names_a_cluster(&pairs(options)?))
}

/// Returns the options of each store of a read.
#[pyfunction]
pub fn store_options(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<Vec<HashMap<String, String>>> {
    let stores = StoreOptions::of(Kind::of_name(kind).map_err(spark)?, &pairs(options)?).map_err(spark)?;
    Ok(stores.into_iter().map(|store| store.pairs.into_iter().collect()).collect())
}

pub fn pairs(options: &Bound<'_, PyDict>) -> PyResult<Pairs> {
    options.iter().map(|(name, text)| Ok((name.extract()?, text.extract()?))).collect()
}

fn to_object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
        Value::Flag(flag) => Ok(flag.into_pyobject(py)?.to_owned().into_any()),
        Value::Number(number) | Value::Time(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Texts(texts) => Ok(pyo3::types::PyTuple::new(py, texts)?.into_any()),
        Value::Ids(ids) => Ok(pyo3::types::PyTuple::new(py, ids)?.into_any()),
    }
}

/// Splits a list of name server addresses.
#[pyfunction]
pub fn parse_name_servers(text: &str) -> PyResult<Vec<String>> {
    cluster::name_servers(text).map_err(spark)
}

/// Returns the namespace in an endpoint; `None` if it has none.
#[pyfunction]
pub fn namespace_of_endpoint(text: &str) -> Option<&str> {
    cluster::namespace_of_endpoint(text)
}

/// Parses a time into milliseconds since 1970.
#[pyfunction]
#[pyo3(signature = (text, name="time"))]
pub fn milliseconds(text: &str, name: &str) -> PyResult<i64> {
    time::named_milliseconds(name, text).map_err(spark)
}

/// Refuses start offsets whose messages retention has removed.
#[pyfunction]
pub fn check_not_expired(name: &str, bounds: Bounds, queues: Queues) -> PyResult<()> {
    rmqfast_spark::request::offsets::check_not_expired(name, &bounds, &queues).map_err(spark)
}

/// Returns the names and Spark types of a request's columns.
#[pyfunction]
pub fn spark_row(request: PyScanRequest) -> PyResult<Vec<(&'static str, String)>> {
    let request = request.into_request()?;
    RowColumns { columns: request.columns, decode: request.decode }.types().map_err(spark)
}

/// Returns the options with the text of the schema file that they name, which executors may not have.
#[pyfunction]
pub fn with_schema_text(options: &Bound<'_, PyDict>) -> PyResult<HashMap<String, String>> {
    Ok(decode::with_schema_text(&pairs(options)?).map_err(spark)?.into_iter().collect())
}
