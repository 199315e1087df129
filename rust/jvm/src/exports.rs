#![allow(unsafe_code, reason = "names that the JVM looks up, and the handles that Java holds for us")]
//! What `org.rmqfast.spark.Native` declares: each takes apart what Java gives, calls, and throws what fails. A panic is
//! thrown, too: it never unwinds into the JVM.
use crate::failure::{Failure, Result};
use crate::options::{Options, columns_of_schema, spark_type};
use crate::read::{Read, resolve};
use crate::task::Task;
use crate::{java, options};
use jni::JNIEnv;
use jni::objects::{JClass, JLongArray, JObject, JObjectArray};
use jni::sys::{jboolean, jint, jlong, jobject};
use rmqfast_store::scan::{Listed, Piece, Way};
use std::panic::{AssertUnwindSafe, catch_unwind};

const EXCEPTION: &str = "org/rmqfast/spark/StoreException";

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self { kind: "RmqError", text: format!("java native interface: {error}") }
    }
}

/// Runs `call`; what it fails with, or panics with, becomes a Java exception, and the value what Java never sees.
fn guarded<'a, T: Default>(env: &mut JNIEnv<'a>, call: impl FnOnce(&mut JNIEnv<'a>) -> Result<T>) -> T {
    let done = catch_unwind(AssertUnwindSafe(|| call(env))).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        Err(Failure { kind: "RmqError", text: format!("a defect of rmqfast: {said}") })
    });
    done.unwrap_or_else(|failure| {
        // an exception that Java itself raised meanwhile, as when memory is short, goes first
        if !env.exception_check().unwrap_or(true) {
            let _ = env.throw_new(EXCEPTION, failure.to_string());
        }
        T::default()
    })
}

/// An object for Java; null while an exception is thrown.
struct Returned(jobject);

impl Default for Returned {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

/// Columns that the options ask for: names and types that take turns.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_row<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    options: JObjectArray<'a>,
) -> jobject {
    let returned = guarded(&mut env, |env| {
        let row = Options::of(&java::pairs(env, &options)?)?.row()?;
        let words: Vec<String> = row.iter().flat_map(|c| [c.name().to_owned(), spark_type(*c).to_owned()]).collect();
        Ok(Returned(java::string_array(env, &words)?.into_raw()))
    });
    returned.0
}

/// The options with all that depends on the store as it is now; `fields` of the schema are names, types, nullable.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_resolve<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    options: JObjectArray<'a>,
    fields: JObjectArray<'a>,
) -> jobject {
    let returned = guarded(&mut env, |env| {
        let pairs = java::pairs(env, &options)?;
        let columns = columns_of_schema(&java::words(env, &fields)?)?;
        let words: Vec<String> = resolve(&pairs, columns)?.into_iter().flat_map(|(name, text)| [name, text]).collect();
        Ok(Returned(java::string_array(env, &words)?.into_raw()))
    });
    returned.0
}

/// Which filters the scan does itself.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_push<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    options: JObjectArray<'a>,
    filters: JObjectArray<'a>,
) -> jobject {
    let returned = guarded(&mut env, |env| {
        let mut read = Read::narrowed(&java::pairs(env, &options)?, &[], &[])?;
        let taken: Vec<jboolean> = read.take(&java::filters(env, &filters)?).into_iter().map(jboolean::from).collect();
        let array = env.new_boolean_array(taken.len() as i32)?;
        env.set_boolean_array_region(&array, 0, &taken)?;
        Ok(Returned(array.into_raw()))
    });
    returned.0
}

/// What the consume queues alone tell: messages, 1 if there are any, the least queue offset, the largest. Null where they
/// do not.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_listed<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    options: JObjectArray<'a>,
    filters: JObjectArray<'a>,
) -> jobject {
    let returned = guarded(&mut env, |env| {
        let read = Read::narrowed(&java::pairs(env, &options)?, &[], &java::filters(env, &filters)?)?;
        let Some(Listed { messages, min_offset, max_offset }) = read.listed()? else { return Ok(Returned::default()) };
        let [min, max] = [min_offset, max_offset].map(Option::unwrap_or_default);
        let array = env.new_long_array(4)?;
        env.set_long_array_region(&array, 0, &[messages, i64::from(messages > 0), min, max])?;
        Ok(Returned(array.into_raw()))
    });
    returned.0
}

/// Partitions: for each way (1 by queue), first byte, the byte behind the last, 1 to check every body.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_plan<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    options: JObjectArray<'a>,
    columns: JObjectArray<'a>,
    filters: JObjectArray<'a>,
    cores: jint,
) -> jobject {
    let returned = guarded(&mut env, |env| {
        let pieces = read(env, &options, &columns, &filters)?.partitions(cores.unsigned_abs().into())?;
        let numbers: Vec<i64> = pieces.iter().flat_map(numbers).collect();
        let array = env.new_long_array(numbers.len() as i32)?;
        env.set_long_array_region(&array, 0, &numbers)?;
        Ok(Returned(array.into_raw()))
    });
    returned.0
}

/// Begins to read a partition of `plan`; the handle is valid until `close`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_open<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    options: JObjectArray<'a>,
    columns: JObjectArray<'a>,
    filters: JObjectArray<'a>,
    partition: JLongArray<'a>,
    limit: jlong,
) -> jlong {
    guarded(&mut env, |env| {
        let read = read(env, &options, &columns, &filters)?;
        let mut numbers = [0; 4];
        env.get_long_array_region(&partition, 0, &mut numbers)?;
        let task = Task::open(read, piece(numbers), limit.unsigned_abs())?;
        Ok(Box::into_raw(Box::new(task)) as jlong)
    })
}

/// Fills the next batch and writes the addresses of its arrays; rows, or -1 at the end.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_next<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    handle: jlong,
    addresses: JLongArray<'a>,
) -> jlong {
    guarded(&mut env, |env| {
        // SAFETY: Java gives a handle of `open` that it has not closed, from one thread at a time: `StoreReader`, the
        // only one who holds it, gives up its handle before it closes it, and its methods are synchronized.
        let task = unsafe { &mut *(handle as *mut Task) };
        let Some(rows) = task.advance()? else { return Ok(-1) };
        env.set_long_array_region(&addresses, 0, task.addresses())?;
        Ok(rows as jlong)
    })
}

/// What the log shall say of a partition that was read to its end; null as a rule.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_warning<'a>(
    mut env: JNIEnv<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> jobject {
    let returned = guarded(&mut env, |env| {
        // SAFETY: as in `next`.
        let task = unsafe { &mut *(handle as *mut Task) };
        let warning = task.take_warning().map(|text| env.new_string(text)).transpose()?;
        Ok(warning.map_or_else(Returned::default, |text| Returned(JObject::from(text).into_raw())))
    });
    returned.0
}

/// Frees what `open` gave.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_close<'a>(mut env: JNIEnv<'a>, _: JClass<'a>, handle: jlong) {
    guarded(&mut env, |_| {
        // SAFETY: as in `next`; the box is the one that `open` gave away, and Java closes it once.
        drop(unsafe { Box::from_raw(handle as *mut Task) });
        Ok(())
    });
}

fn read<'a>(
    env: &mut JNIEnv<'a>,
    options: &JObjectArray<'a>,
    columns: &JObjectArray<'a>,
    filters: &JObjectArray<'a>,
) -> Result<Read> {
    let pairs: options::Pairs = java::pairs(env, options)?;
    Read::narrowed(&pairs, &java::words(env, columns)?, &java::filters(env, filters)?)
}

fn numbers(piece: &Piece) -> [i64; 4] {
    let way = i64::from(piece.way == Way::Queue);
    [way, piece.from.cast_signed(), piece.end.cast_signed(), i64::from(piece.verify_crc)]
}

fn piece([way, from, end, verify_crc]: [i64; 4]) -> Piece {
    let way = if way == 1 { Way::Queue } else { Way::Log };
    Piece { way, from: from.cast_unsigned(), end: end.cast_unsigned(), verify_crc: verify_crc == 1 }
}
