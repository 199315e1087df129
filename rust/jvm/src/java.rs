//! Converts Java strings and arrays to Rust and back.
use jni::errors::Result;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString, JValue};
use jni::{Env, JavaVM, jni_sig, jni_str};
use rmqfast_spark::Pairs;
use rmqfast_spark::request::schema::spark_type;
use rmqfast_spark::stream::Level;
use rmqfast_store::scan::Column;
use rmqfast_store::scan::push_down::{Filter, Literal};

pub type Texts<'a> = JObjectArray<'a, JString<'a>>;

pub type TextLists<'a> = JObjectArray<'a, Texts<'a>>;

/// Converts a Java `String`. A Java null becomes `None`.
pub fn text(env: &mut Env<'_>, text: &JString<'_>) -> Result<Option<String>> {
    if text.is_null() { Ok(None) } else { text.try_to_string(env).map(Some) }
}

/// Converts a `String[]`, in which a Java null becomes `None`.
pub fn texts(env: &mut Env<'_>, array: &Texts<'_>) -> Result<Vec<Option<String>>> {
    let mut texts = Vec::new();
    for index in 0..array.len(env)? {
        let element = array.get_element(env, index)?;
        // null is a value in filters: IN (..., NULL)
        texts.push(text(env, &element)?);
    }
    Ok(texts)
}

/// Converts a `String[]` that has no null elements.
pub fn words(env: &mut Env<'_>, array: &Texts<'_>) -> Result<Vec<String>> {
    // options and columns are never null in Spark
    Ok(texts(env, array)?.into_iter().map(Option::unwrap_or_default).collect())
}

/// Converts a `String[]` in which names and values alternate.
pub fn pairs(env: &mut Env<'_>, array: &Texts<'_>) -> Result<Pairs> {
    let words = words(env, array)?;
    Ok(words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

pub fn filters(env: &mut Env<'_>, array: &TextLists<'_>) -> Result<Vec<Filter>> {
    let mut filters = Vec::new();
    for index in 0..array.len(env)? {
        let parts = array.get_element(env, index)?;
        filters.push(of(texts(env, &parts)?));
        // released early: local references live until the call returns, and the JVM has few
        env.delete_local_ref(parts);
    }
    Ok(filters)
}

/// Creates a `String[]`.
pub fn string_array<'a>(env: &mut Env<'a>, words: &[String]) -> Result<Texts<'a>> {
    let array = Texts::new(env, words.len(), JString::null())?;
    for (index, word) in words.iter().enumerate() {
        let element = env.new_string(word)?;
        array.set_element(env, index, &element)?;
        env.delete_local_ref(element);
    }
    Ok(array)
}

/// Creates a `String[]` in which names and values alternate.
pub fn string_pairs<'a>(env: &mut Env<'a>, pairs: impl IntoIterator<Item = (String, String)>) -> Result<Texts<'a>> {
    let words: Vec<String> = pairs.into_iter().flat_map(|(name, text)| [name, text]).collect();
    string_array(env, &words)
}

pub fn longs<'a>(env: &mut Env<'a>, numbers: &[i64]) -> Result<JLongArray<'a>> {
    let array = JLongArray::new(env, numbers.len())?;
    array.set_region(env, 0, numbers)?;
    Ok(array)
}

pub fn byte_arrays<'a>(env: &mut Env<'a>, all: &[Vec<u8>]) -> Result<JObjectArray<'a, JByteArray<'a>>> {
    let array = JObjectArray::<JByteArray<'a>>::new(env, all.len(), JByteArray::null())?;
    for (index, bytes) in all.iter().enumerate() {
        let element = env.byte_array_from_slice(bytes)?;
        array.set_element(env, index, &element)?;
        env.delete_local_ref(element);
    }
    Ok(array)
}

pub fn warn(env: &mut Env<'_>, warnings: &[String]) -> Result<()> {
    let lines: Vec<_> = warnings.iter().map(|text| (Level::Warning, text.clone())).collect();
    log(env, &lines)
}

pub fn log(env: &mut Env<'_>, lines: &[(Level, String)]) -> Result<()> {
    for (level, text) in lines {
        let text = env.new_string(text)?;
        let class = native_class(env)?;
        let arguments = [JValue::Bool(*level == Level::Warning), JValue::Object(&text)];
        env.call_static_method(&class, jni_str!("log"), jni_sig!("(ZLjava/lang/String;)V"), &arguments)?;
        env.delete_local_ref(text);
        env.delete_local_ref(class);
    }
    Ok(())
}

/// Fails if the calling Java thread was interrupted. Loops that wait in Rust call this regularly, since Java cannot
/// interrupt them.
pub fn check_interrupt() -> rmqfast_remoting::Result<()> {
    let look = |env: &mut Env<'_>| -> Result<bool> {
        let class = native_class(env)?;
        let is_interrupted = env.call_static_method(&class, jni_str!("isInterrupted"), jni_sig!("()Z"), &[])?.z();
        // released early, since this is called many times within one native call
        env.delete_local_ref(class);
        is_interrupted
    };
    let is_interrupted = JavaVM::singleton().and_then(|vm| vm.with_top_local_frame(look));
    // a thread that Java does not know was not interrupted
    if is_interrupted.unwrap_or(false) { Err(rmqfast_remoting::Error::Interrupted) } else { Ok(()) }
}

/// Finds the Java class of the native methods, through the class loader that has loaded it.
fn native_class<'a>(env: &mut Env<'a>) -> Result<JClass<'a>> {
    env.find_class(jni_str!("org/rmqfast/spark/Native"))
}

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
