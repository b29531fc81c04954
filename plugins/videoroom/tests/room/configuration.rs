//! The plugin's section of the configuration.

use portunus_core::configuration::{self, Configuration, Mistake, Printed, keys_of};
use portunus_videoroom::VideoRoomConfig;

fn read(text: &str) -> Result<VideoRoomConfig, Vec<Mistake>> {
    configuration::read(text, |file| {
        file.section("videoroom", VideoRoomConfig::read)
    })
}

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = read(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

const ROOMS: &str = r#"
[videoroom]
admin_key = "k"
[[videoroom.room]]
room = 1234
description = "Demo"
publishers = 6
[[videoroom.room]]
room = 5678
videocodec = "vp9,vp8"
"#;

#[test]
fn rooms_are_read_and_printed() {
    let config = read(ROOMS).unwrap();
    let ids: Vec<_> = config.rooms.iter().map(|r| r.id.to_string()).collect();
    assert_eq!(ids, ["1234", "5678"]);
    let mut printed = Printed::default();
    printed.section("videoroom", keys_of(&config).unwrap());
    assert_eq!(read(&printed.into_text().unwrap()).unwrap(), config);
}

#[test]
fn mistakes_in_rooms_have_their_lines() {
    for (mistake, replaced, expected) in [
        (
            "room = 1234",
            "room = 5678",
            "line 9: videoroom.room.room: another room has this id",
        ),
        (
            "room = \"a\"",
            "room = 1234",
            "line 5: videoroom.room.room: expected a positive integer",
        ),
        (
            "",
            "room = 1234",
            "line 4: videoroom.room.room: room is missing",
        ),
        (
            "videocodec = \"mpeg4\"",
            "videocodec = \"vp9,vp8\"",
            "line 10: videoroom.room.videocodec: unsupported codec",
        ),
    ] {
        assert_eq!(mistakes(&ROOMS.replace(replaced, mistake)), [expected]);
    }
    let unknown = mistakes(&ROOMS.replace("publishers", "publisher")).join("");
    assert!(
        unknown.starts_with("line 7: videoroom.room.publisher: unknown key"),
        "{unknown}"
    );
}
