//! The plugin's section of the configuration.

use portunus_core::configuration::{self, Configuration, Mistake, Printed, keys_of};
use portunus_textroom::{TextRoomConfig, rewrite_saved};

fn read(text: &str) -> Result<TextRoomConfig, Vec<Mistake>> {
    configuration::read(text, |file| file.section("textroom", TextRoomConfig::read))
}

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = read(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

const ROOMS: &str = r#"
[textroom]
admin_key = "k"
[[textroom.room]]
room = 1234
description = "Demo"
history = 20
[[textroom.room]]
room = 5678
post = "http://127.0.0.1:8000/chat"
"#;

#[test]
fn rooms_are_read_and_printed() {
    let config = read(ROOMS).unwrap();
    let ids: Vec<_> = config.rooms.iter().map(|r| r.id.to_string()).collect();
    assert_eq!(ids, ["1234", "5678"]);
    let mut printed = Printed::default();
    printed.section("textroom", keys_of(&config).unwrap());
    assert_eq!(read(&printed.into_text().unwrap()).unwrap(), config);
}

#[test]
fn mistakes_in_rooms_have_their_lines() {
    for (mistake, replaced, expected) in [
        (
            "room = 1234",
            "room = 5678",
            "line 9: textroom.room.room: another room has this id",
        ),
        (
            "room = \"a\"",
            "room = 1234",
            "line 5: textroom.room.room: expected a positive integer",
        ),
        (
            "",
            "room = 1234",
            "line 4: textroom.room.room: room is missing",
        ),
        (
            "post = \"nowhere\"",
            "post = \"http://127.0.0.1:8000/chat\"",
            "line 10: textroom.room.post: expected an address that begins with http:// or https://",
        ),
        (
            "history = 10001",
            "history = 20",
            "line 7: textroom.room.history: expected 10000 at most",
        ),
    ] {
        assert_eq!(mistakes(&ROOMS.replace(replaced, mistake)), [expected]);
    }
    let unknown = mistakes(&ROOMS.replace("history", "histories")).join("");
    assert!(
        unknown.starts_with("line 7: textroom.room.histories: unknown key"),
        "{unknown}"
    );
}

#[test]
fn limits_have_bounds() {
    for (key, expected) in [
        ("max_message = 10", "textroom.max_message"),
        ("max_message = 300000", "textroom.max_message"),
        ("message_burst = 0", "textroom.message_burst"),
        ("post_timeout = 0", "textroom.post_timeout"),
        ("post_retries = 101", "textroom.post_retries"),
        ("byte_burst = 1000", "byte_burst to be max_message at least"),
        ("json = \"pretty\"", "textroom.json"),
    ] {
        let found = mistakes(&format!("[textroom]\n{key}\n")).join("\n");
        assert!(found.contains(expected), "{key}: {found}");
    }
    assert!(read("[textroom]\nbyte_burst = 1000\nbyte_rate = 0\n").is_ok());
}

#[test]
fn a_file_of_saved_rooms_reads_the_same() {
    let text = "removed = [1]\n[[room]]\nroom = 7\nsecret = \"s\"\npost = \"http://a/\"\n";
    let written = rewrite_saved(text, false).unwrap();
    assert_eq!(rewrite_saved(&written, false).unwrap(), written);
    assert!(written.contains("post = \"http://a/\""), "{written}");
    assert!(rewrite_saved("[[room]]\nroom = 7\npublishers = 6\n", false).is_err());
}
