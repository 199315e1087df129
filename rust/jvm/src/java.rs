//! Java's arrays of text as Rust's, and back.
use jni::Env;
use jni::errors::Result;
use jni::objects::{JObjectArray, JString};
use rmqfast_spark::Pairs;
use rmqfast_spark::selection::Filter;

/// A `String[]`.
pub type Texts<'a> = JObjectArray<'a, JString<'a>>;

/// A `String[][]`.
pub type TextLists<'a> = JObjectArray<'a, Texts<'a>>;

/// Texts of a `String[]`; null is none.
pub fn texts(env: &mut Env<'_>, array: &Texts<'_>) -> Result<Vec<Option<String>>> {
    let mut texts = Vec::new();
    for index in 0..array.len(env)? {
        let element = array.get_element(env, index)?;
        // null is a value of its own in a filter: IN (..., NULL)
        texts.push(if element.is_null() { None } else { Some(element.try_to_string(env)?) });
    }
    Ok(texts)
}

/// Texts of a `String[]` that holds no null.
pub fn words(env: &mut Env<'_>, array: &Texts<'_>) -> Result<Vec<String>> {
    // options and columns are never null in Spark
    Ok(texts(env, array)?.into_iter().map(Option::unwrap_or_default).collect())
}

/// Names and texts that take turns in a `String[]`.
pub fn pairs(env: &mut Env<'_>, array: &Texts<'_>) -> Result<Pairs> {
    let words = words(env, array)?;
    Ok(words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// Filters of a `String[][]`.
pub fn filters(env: &mut Env<'_>, array: &TextLists<'_>) -> Result<Vec<Filter>> {
    let mut filters = Vec::new();
    for index in 0..array.len(env)? {
        let parts = array.get_element(env, index)?;
        filters.push(crate::filters::of(texts(env, &parts)?));
        // a local reference lives until the call returns, and the JVM has room for few
        env.delete_local_ref(parts);
    }
    Ok(filters)
}

/// A `String[]` of `words`.
pub fn string_array<'a>(env: &mut Env<'a>, words: &[String]) -> Result<Texts<'a>> {
    let array = Texts::new(env, words.len(), JString::null())?;
    for (index, word) in words.iter().enumerate() {
        let element = env.new_string(word)?;
        array.set_element(env, index, &element)?;
        env.delete_local_ref(element);
    }
    Ok(array)
}
