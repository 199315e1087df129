//! A record of any bytes: a message lies inside of the bytes, and what it holds can be written again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_store::format::message::{Item, Layout, Message};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Item::Message(layout)) = Layout::decode(bytes) else { return };
    let message = Message::new(bytes, layout).expect("a decoded layout lies in its bytes");
    let parts = message.body().len() + message.topic().len() + message.properties().len();
    assert!(parts < message.record().len() && message.record().len() <= bytes.len());
    assert!(matches!(message.born_host().len(), 8 | 20) && matches!(message.store_host().len(), 8 | 20));
    assert_eq!(message.record().len(), layout.total as usize);
    let cut = &message.record()[..message.record().len() - 1];
    assert!(!matches!(Layout::decode(cut), Ok(Item::Message(_))), "a record that is cut is none");
    let _ = (message.body_crc_matches(), message.property("TAGS"), layout.is_dispatched());
});
