//! The hot read path: plan, read, filter, build Arrow batches.
