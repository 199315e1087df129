//! Ends the build of a wheel that would lack the jar of the columnar source: maturin takes what it finds, and says nothing.

use std::path::Path;

const JAR: &str = "../../python/rmqfast/spark/jars/rmqfast-columnar.jar";
const LEFT_OUT: &str = "RMQFAST_NO_JAR";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={LEFT_OUT}");
    if std::env::var_os("CARGO_FEATURE_WHEEL").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed={JAR}");
    if !Path::new(JAR).is_file() && std::env::var_os(LEFT_OUT).is_none_or(|value| value.is_empty()) {
        println!(
            "cargo::error=the wheel would have no jar for Spark: build it by `make wheel` or `pip wheel .`, \
             or set {LEFT_OUT}=1 to leave the jar out"
        );
    }
}
