//! Both readers of a log, and who serves one, beside peers that do as masters and slaves do, and beside some that do not.
#[expect(dead_code, reason = "it does more for tests of the store")]
#[path = "../../../store/tests/store/chance.rs"]
mod chance;
mod follower;
mod ha_service;
mod log_reader;
mod peers;
mod tls;
mod topics;
