//! What RocketMQ calls a store: commit log, consume queues, index, append.
