//! Header fields of sends and pulls of any text, in JSON and in binary: they are read, or it is said which one is wrong.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_broker::headers::{PullHeader, SendHeader};
use rmqfast_remoting::{Command, Frame, Limits, SerializeType};

fuzz_target!(|bytes: &[u8]| {
    for serialize_type in [SerializeType::Json, SerializeType::RocketMq] {
        let frame = Frame { serialize_type, header: bytes, body: b"" };
        let Ok(command) = Command::decode(&frame, &Limits::default()) else { continue };
        let given = |name: &str| command.field(name).is_some();
        match PullHeader::read(&command) {
            Ok(header) => assert_eq!((Some(header.topic), given("commitOffset")), (command.field("topic"), true)),
            Err(remark) => assert!(remark.starts_with("the header field ") && remark.len() < 400, "{remark}"),
        }
        for (is_short, topic) in [(true, "b"), (false, "topic")] {
            match SendHeader::read(&command, is_short) {
                Ok(header) => assert_eq!(Some(header.topic), command.field(topic)),
                Err(remark) => assert!(remark.starts_with("the header field ") && remark.len() < 400, "{remark}"),
            }
        }
    }
});
