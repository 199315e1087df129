//! What the columnar source calls, without a JVM.
mod places_of_unsafe;
mod store_task;
