#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
use serde_json::json;

use super::*;
use crate::Access;

#[derive(Debug, Clone, PartialEq, Default)]
struct RoomOptions {
    description: String,
    access: Access,
    publishers: u8,
    record: bool,
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Wav,
    Opus,
}

type Opt = super::Opt<RoomOptions>;

const OPTIONS: Options<RoomOptions> = Options(&[
    Opt::checked::<bool>("permanent").not_configured(),
    Opt::checked::<u64>("threads"),
    Opt::new("description", place!(description))
        .edited_as("new_description")
        .listed(),
    Opt::new("secret", place!(access.secret)).edited_as("new_secret"),
    Opt::new(
        "format",
        place!(format, format, |format| format.map(name).into()),
    )
    .edited_as("format")
    .listed(),
    Opt::new("publishers", place!(publishers)).listed_as("max_publishers"),
    Opt::new("record", place!(record)).listed_if(|options| options.record),
]);

fn format(fields: Fields<'_>, name: &'static str) -> Result<Option<Option<Format>>, Refusal> {
    match fields.text(name)? {
        None => Ok(None),
        Some("wav") => Ok(Some(Some(Format::Wav))),
        Some("opus") => Ok(Some(Some(Format::Opus))),
        Some(_) => Err(Refusal::Value(name, "wav or opus")),
    }
}

fn name(format: Format) -> &'static str {
    match format {
        Format::Wav => "wav",
        Format::Opus => "opus",
    }
}

fn with<T>(members: Value, act: impl FnOnce(Fields<'_>) -> T) -> T {
    act(Fields(members.as_object().unwrap()))
}

fn read(members: Value) -> Result<RoomOptions, Refusal> {
    with(members, |fields| OPTIONS.read(fields))
}

#[test]
fn what_is_written_reads_the_same() {
    let all = json!({
        "description": "Hall", "secret": "s", "format": "opus", "publishers": 6, "record": true,
    });
    let options = read(all.clone()).unwrap();
    assert_eq!(options.format, Some(Format::Opus));
    assert_eq!(Value::from(OPTIONS.to_members(&options)), all);
    assert_eq!(read(json!({ "secret": "" })), Ok(RoomOptions::default()));
    assert!(OPTIONS.to_members(&RoomOptions::default()).is_empty());
}

#[test]
fn the_first_error_is_that_of_the_table() {
    let wrong = |name: &str, wanted: &'static str| Err(FieldError::wrong_type(name, wanted).into());
    let members = json!({ "record": 1, "publishers": 256, "threads": -1, "format": "mp3" });
    assert_eq!(read(members), wrong("threads", "a positive integer"));
    let members = json!({ "record": 1, "publishers": 256, "format": "mp3" });
    let value = Refusal::Value("format", "wav or opus");
    assert_eq!(read(members.clone()), Err(value.clone()));
    let is_type = |refusal: &Refusal| matches!(refusal, Refusal::Field(_));
    let first = with(members, |fields| OPTIONS.check(fields, is_type));
    assert_eq!(
        first,
        wrong("publishers", "a positive integer").map(|_: RoomOptions| ())
    );
    let fine = with(json!({ "format": "mp3" }), |fields| {
        OPTIONS.check(fields, is_type)
    });
    assert_eq!(fine, Ok(()));
}

/// A stream that requires a port, with confidential bytes.
#[derive(Debug, Clone, PartialEq, Default)]
struct Stream {
    port: u16,
    bytes: u16,
    token: Option<String>,
}

type StreamOpt = super::Opt<Stream>;

const STREAM: Options<Stream> = Options(&[
    StreamOpt::new("port", place!(port)).required(),
    StreamOpt::new("bytes", place!(bytes, below_10)).listed(),
    StreamOpt::new("token", place!(token))
        .listed()
        .confidential(),
]);

fn below_10(fields: Fields<'_>, name: &'static str) -> Result<Option<u16>, Refusal> {
    let bytes = fields.positive(name)?;
    Ok(bytes.map(|bytes| u16::try_from(bytes).unwrap_or(9).min(9)))
}

#[test]
fn an_option_that_is_required_is_read_and_written_always() {
    let read = |members| with(members, |fields| STREAM.read(fields));
    let missing = FieldError::Missing("port".to_owned());
    assert_eq!(read(json!({ "bytes": "x" })), Err(missing.into()));
    let stream = read(json!({ "port": 0, "bytes": 40 })).unwrap();
    let written = STREAM.to_members(&stream);
    assert_eq!(Value::from(written), json!({ "port": 0, "bytes": 9 }));
    let default = Stream {
        bytes: 9,
        ..Stream::default()
    };
    let written = STREAM.written(&stream, &default);
    assert_eq!(Value::from(written), json!({ "port": 0 }));
    let mut again = default;
    with(json!({ "port": 0 }), |fields| {
        STREAM.read_into(&mut again, fields)
    })
    .unwrap();
    assert_eq!(again, stream);
}

#[test]
fn what_is_confidential_is_shown_to_some() {
    let members = json!({ "port": 7, "bytes": 1, "token": "t" });
    let stream = with(members, |fields| STREAM.read(fields)).unwrap();
    assert_eq!(Value::from(STREAM.listed(&stream)), json!({ "bytes": 1 }));
    let all = json!({ "bytes": 1, "token": "t" });
    assert_eq!(Value::from(STREAM.shown(&stream, true)), all);
}

#[test]
fn an_edit_changes_what_it_names_and_what_may_be_changed() {
    let before = read(json!({ "description": "Hall", "secret": "s", "publishers": 6 })).unwrap();
    let edit = json!({
        "new_description": "", "description": "Other", "new_secret": "t", "publishers": 7, "format": "wav",
    });
    let after = with(edit, |fields| OPTIONS.edited(&before, fields)).unwrap();
    let expected =
        json!({ "description": "Hall", "secret": "t", "publishers": 6, "format": "wav" });
    assert_eq!(after, read(expected).unwrap());
    let wrong = json!({ "new_secret": 1, "secret": 1 });
    let wrong = with(wrong, |fields| OPTIONS.check_edited(fields, |_| true));
    let expected = FieldError::wrong_type("new_secret", "a string");
    assert_eq!(wrong, Err(expected.into()));
}

#[test]
fn a_list_tells_what_the_table_says() {
    let listed = |members| Value::from(OPTIONS.listed(&read(members).unwrap()));
    let plain = json!({ "description": "Hall", "max_publishers": 0 });
    assert_eq!(
        listed(json!({ "description": "Hall", "secret": "s" })),
        plain
    );
    let recorded =
        json!({ "description": "", "max_publishers": 0, "record": true, "format": "wav" });
    assert_eq!(listed(json!({ "record": true, "format": "wav" })), recorded);
}

#[test]
fn a_key_that_no_room_has_is_a_mistake() {
    let check = |members| {
        with(members, |fields| {
            let checked = OPTIONS.check_keys(fields.0);
            checked.map_err(|problem| (problem.key.clone(), problem.to_string()))
        })
    };
    assert_eq!(
        check(json!({ "room": 1, "threads": 2, "secret": "s" })),
        Ok(())
    );
    let (key, text) = check(json!({ "permanent": true })).unwrap_err();
    assert_eq!(key, "permanent");
    let known = "room, threads, description, secret, format, publishers, record";
    assert_eq!(text, format!("unknown key; there are {known}"));
}
