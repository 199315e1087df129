//! What `org.rmqfast.spark.Native` and `NativeSink` declare: each takes apart what Java gives, calls, and throws what fails.
mod frame;
mod handle;

/// Exports functions as static methods of a Java class. Each body runs in the [`frame`](frame::framed).
macro_rules! exports {
    ($class:literal
    $($(#[$doc:meta])* fn $name:ident($env:pat $(, $argument:pat => $type:ty)*) $(-> $value:ty)? $body:block)*) => {$(
        $(#[$doc])*
        #[jni::jni_mangle($class)]
        pub fn $name<'a>(env: jni::EnvUnowned<'a>, _: jni::objects::JClass<'a> $(, $argument: $type)*) $(-> $value)? {
            $crate::exports::frame::framed(env, |$env| $body)
        }
    )*};
}

mod reads;
mod sinks;
mod streams;
