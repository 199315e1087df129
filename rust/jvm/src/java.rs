//! Java's arrays of text as Rust's, and back.
use crate::filters::Filter;
use crate::options::Pairs;
use jni::JNIEnv;
use jni::errors::Result;
use jni::objects::{JObject, JObjectArray, JString};

/// Texts of a `String[]`; null is none.
pub fn texts(env: &mut JNIEnv<'_>, array: &JObjectArray<'_>) -> Result<Vec<Option<String>>> {
    let len = env.get_array_length(array)?;
    let mut texts = Vec::new();
    for index in 0..len {
        let element = env.get_object_array_element(array, index)?;
        texts.push(if element.is_null() { None } else { Some(text(env, &JString::from(element))?) });
    }
    Ok(texts)
}

/// Texts of a `String[]` that holds no null.
pub fn words(env: &mut JNIEnv<'_>, array: &JObjectArray<'_>) -> Result<Vec<String>> {
    Ok(texts(env, array)?.into_iter().map(Option::unwrap_or_default).collect())
}

/// Names and texts that take turns in a `String[]`.
pub fn pairs(env: &mut JNIEnv<'_>, array: &JObjectArray<'_>) -> Result<Pairs> {
    let words = words(env, array)?;
    Ok(words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// Filters of a `String[][]`.
pub fn filters(env: &mut JNIEnv<'_>, array: &JObjectArray<'_>) -> Result<Vec<Filter>> {
    let len = env.get_array_length(array)?;
    let mut filters = Vec::new();
    for index in 0..len {
        let parts = JObjectArray::from(env.get_object_array_element(array, index)?);
        filters.push(Filter::of(texts(env, &parts)?));
        env.delete_local_ref(parts)?;
    }
    Ok(filters)
}

/// A `String[]` of `words`.
pub fn string_array<'a>(env: &mut JNIEnv<'a>, words: &[String]) -> Result<JObjectArray<'a>> {
    let array = env.new_object_array(words.len() as i32, "java/lang/String", JObject::null())?;
    for (index, word) in words.iter().enumerate() {
        let element = env.new_string(word)?;
        env.set_object_array_element(&array, index as i32, &element)?;
        env.delete_local_ref(element)?;
    }
    Ok(array)
}

fn text(env: &mut JNIEnv<'_>, string: &JString<'_>) -> Result<String> {
    Ok(env.get_string(string)?.into())
}
