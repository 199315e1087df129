//! Frames of any bytes, with headers of both kinds: what is cut is waited for, and what is read can be written and read again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use rmqfast_remoting::{Command, Header, Limits, OwnedCommand, Value, frame};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = frame::first(rest, &limits) {
        assert!(length >= 8 && length == 8 + frame.header.len() + frame.body.len());
        assert_eq!(frame::first(&rest[..length - 1], &limits).ok(), Some(None));
        if let Ok(command) = Command::decode(&frame, &limits) {
            check(&command, &limits);
        }
        rest = &rest[length..];
    }
});

fn check(command: &Command<'_>, limits: &Limits) {
    assert!(command.fields.len() <= limits.fields);
    let owned = OwnedCommand::from(command);
    assert_eq!(&owned.borrow(), command);
    let fields: Vec<_> = command.fields.iter().map(|(name, value)| (name.as_ref(), Value::Text(value))).collect();
    let header = Header {
        code: command.code,
        opaque: command.opaque,
        flag: command.flag,
        remark: command.remark.as_deref(),
        fields: &fields,
        serialize_type: command.serialize_type,
        version: command.version,
    };
    let mut out = Vec::new();
    header.write(command.body, &mut out);
    // JSON may need more room for the same texts
    let wide = Limits { frame: usize::MAX, header: usize::MAX, ..*limits };
    let (again, length) = frame::first(&out, &wide).expect("sound").expect("whole");
    let again = Command::decode(&again, &wide).expect("what was written");
    assert_eq!(length, out.len());
    assert_eq!(
        (again.code, again.opaque, again.flag, again.body),
        (command.code, command.opaque, command.flag, command.body)
    );
    assert_eq!(again.remark.as_deref().unwrap_or_default(), command.remark.as_deref().unwrap_or_default());
    assert_eq!(again.fields, command.fields);
}
