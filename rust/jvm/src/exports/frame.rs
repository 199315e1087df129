//! The frame of each call from Java: what fails or panics in it becomes a Java exception.
use crate::failure::{Failure, Result};
use jni::errors::{Error, ErrorPolicy};
use jni::strings::JNIString;
use jni::{Env, EnvUnowned, jni_str};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: "RmqError", text: format!("java native interface: {error}") }
    }
}

/// Runs `call`; where it fails, Java gets an exception, and never sees the default that goes back with it.
pub fn run_framed<'a, T: Default>(mut env: EnvUnowned<'a>, call: impl FnOnce(&mut Env<'a>) -> Result<T>) -> T {
    env.with_env(|env| caught(|| call(env))).resolve::<Thrown>()
}

/// Runs `call`. A panic becomes a failure: unwinding into the JVM would end the executor.
fn caught<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    // what a panic leaves half done is behind a handle, and Java closes that once a call failed
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(defect(&*panic)))
}

fn defect(panic: &(dyn Any + Send)) -> Failure {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    // a panic with arguments has a `String`, one without a `&str`
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    Failure { kind: "RmqError", text: format!("a defect of rmqfast: {message}") }
}

/// Turns a failure into a Java exception.
struct Thrown;

impl<T: Default> ErrorPolicy<T, Failure> for Thrown {
    type Captures<'e: 'm, 'm> = ();

    fn on_error<'e: 'm, 'm>(env: &mut Env<'e>, (): &mut (), failure: Failure) -> jni::errors::Result<T> {
        // an exception that Java itself raised meanwhile, as when memory is short, goes first
        if !env.exception_check() {
            // not by the loader of the thread, but by that of the class whose method this is
            let class = env.find_class(jni_str!("org/rmqfast/spark/SourceException"))?;
            // to have thrown is an error here, too
            let _ = env.throw_new(class, JNIString::from(failure.to_string()));
        }
        Ok(T::default())
    }

    fn on_panic<'e: 'm, 'm>(env: &mut Env<'e>, none: &mut (), panic: Box<dyn Any + Send>) -> jni::errors::Result<T> {
        Self::on_error(env, none, defect(&*panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    fn thrown(call: impl FnOnce() -> Result<i64>) -> String {
        caught(call).expect_err("a failure").to_string()
    }

    #[test]
    fn a_value_and_a_failure_pass_through() {
        assert_eq!(caught(|| Ok(7)).expect("a value"), 7);
        assert_eq!(thrown(|| Err(Failure::argument("no"))), "ArgumentError: no");
    }

    #[test]
    fn a_panic_is_a_failure_that_says_the_same() {
        let nothing: [i64; 0] = [];
        let at = nothing.len();
        let text = thrown(|| Ok(nothing[at]));
        assert_eq!(text, "RmqError: a defect of rmqfast: index out of bounds: the len is 0 but the index is 0");
        assert_eq!(thrown(|| panic!("no words of {}", "mine")), "RmqError: a defect of rmqfast: no words of mine");
        assert_eq!(thrown(|| panic!("plain")), "RmqError: a defect of rmqfast: plain");
        assert_eq!(thrown(|| panic_any(7)), "RmqError: a defect of rmqfast: no words");
    }
}
