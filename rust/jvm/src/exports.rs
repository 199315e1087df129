//! Native methods of `org.rmqfast.spark.Native` and `NativeSink`. Each converts its arguments, calls Rust code and
//! throws errors as Java exceptions.
mod frame;
mod handle;

/// Exports functions as static native methods of a Java class. The body of each function runs in
/// [`run_framed`](frame::run_framed).
macro_rules! exports {
    ($class:literal
    $($(#[$doc:meta])* fn $name:ident($env:pat $(, $argument:pat => $type:ty)*) $(-> $value:ty)? $body:block)*) => {$(
        $(#[$doc])*
        #[jni::jni_mangle($class)]
        pub fn $name<'a>(env: jni::EnvUnowned<'a>, _: jni::objects::JClass<'a> $(, $argument: $type)*) $(-> $value)? {
            $crate::exports::frame::run_framed(env, |$env| $body)
        }
    )*};
}

mod reads;
mod sinks;
mod streams;
