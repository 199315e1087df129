//! Both readers of a log beside peers that serve one as masters do, and beside some that do not.
mod follower;
mod log_reader;
mod peers;
