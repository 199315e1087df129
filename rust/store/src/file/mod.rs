//! Files of a store: names, reads, locks. The only unsafe code of the crate.
