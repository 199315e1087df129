//! Both readers of a log, and who serves one, beside peers that do as masters and slaves do, and beside some that do not.
mod follower;
mod ha_service;
mod log_reader;
mod peers;
mod tls;
