//! The body of a batch of any bytes: what is taken is all of it, and the same when it is written again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_broker::parsed_send;

fuzz_target!(|bytes: &[u8]| {
    let Some(messages) = parsed_send::batch_messages(bytes) else { return };
    assert!(!messages.is_empty());
    let mut rest = bytes;
    for message in messages {
        let size = 22 + message.body.len() + message.properties.len();
        let (record, behind) = rest.split_at(size);
        assert_eq!(record[..4], (size as i32).to_be_bytes());
        assert_eq!(record[12..16], message.flag.to_be_bytes());
        assert_eq!(record[20..20 + message.body.len()], *message.body);
        assert!(record.ends_with(message.properties));
        rest = behind;
    }
    assert!(rest.is_empty());
});
