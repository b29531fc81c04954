//! The plugin's section of the configuration.

use portunus_core::configuration::{self, Configuration, Mistake, Printed, keys_of};
use portunus_streaming::StreamingConfig;

const SAMPLE: &str = include_str!("../../../../packaging/portunus.toml");

fn read(text: &str) -> Result<StreamingConfig, Vec<Mistake>> {
    configuration::read(text, |file| {
        file.section("streaming", StreamingConfig::read)
    })
}

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = read(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

#[test]
fn the_samples_mountpoints_are_what_they_say() {
    let examples = SAMPLE
        .lines()
        .skip_while(|l| *l != "# [[streaming.mountpoint]]");
    let examples = examples.take_while(|line| line.starts_with('#'));
    let lines = examples.map(|line| line.strip_prefix("# ").unwrap_or_default());
    let text: Vec<&str> = lines.collect();
    // The only key of these that is read as bytes.
    let key = "WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN";
    let text = text
        .join("\n")
        .replace("srtpcrypto = \"…\"", &format!("srtpcrypto = \"{key}\""));
    let config = read(&text).unwrap();
    let mountpoints = config.mountpoints.iter();
    let types = mountpoints.map(|it| (it.name(), it.to_members()["type"].clone()));
    let expected = [
        ("studio", "rtp"),
        ("stage", "whip"),
        ("radio", "live"),
        ("film", "ondemand"),
        ("gate", "rtsp"),
    ];
    assert!(
        types.eq(expected.map(|(name, kind)| (name, kind.into()))),
        "{text}"
    );
    // Each key of these types is in an example, except deprecated ones.
    for key in [
        "filename",
        "audio",
        "video",
        "audiopt",
        "audiocodec",
        "audiofmtp",
        "videopt",
        "videocodec",
        "videofmtp",
        "url",
        "rtsp_user",
        "rtsp_pwd",
        "rtsp_transport",
        "rtspiface",
        "rtsp_failcheck",
        "rtsp_reconnect_delay",
        "rtsp_session_timeout",
        "rtsp_timeout",
        "rtsp_conn_timeout",
        "rtsp_quirk",
        "rtsp_notify_changes",
    ] {
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{key} = "))),
            "{key}"
        );
    }
}

const MOUNTPOINTS: &str = r#"
[streaming]
rtp_port_range = "20001-30000"
[[streaming.mountpoint]]
name = "hall"
type = "rtp"
id = 7
media = [{ type = "audio", mid = "a", port = 5002, pt = 111, codec = "opus" }]
[[streaming.mountpoint]]
name = "stage"
type = "whip"
[[streaming.mountpoint.media]]
type = "video"
mid = "v"
"#;

#[test]
fn mountpoints_are_read_and_printed() {
    let config = read(MOUNTPOINTS).unwrap();
    let names: Vec<_> = config.mountpoints.iter().map(|m| m.name()).collect();
    assert_eq!(names, ["hall", "stage"]);
    assert_eq!(config.rtp_port_range.first(), 20_002);
    let mut printed = Printed::default();
    printed.section("streaming", keys_of(&config).unwrap());
    assert_eq!(read(&printed.into_text().unwrap()).unwrap(), config);
}

#[test]
fn mistakes_in_mountpoints_have_their_lines() {
    let line = |mistake: &str, line: &str| {
        let text = MOUNTPOINTS.replace(line, mistake);
        assert_ne!(text, MOUNTPOINTS);
        mistakes(&text).join("; ")
    };
    for (mistake, replaced, expected) in [
        (
            "type = \"rtmp\"",
            "type = \"rtp\"",
            "line 6: streaming.mountpoint.type: there are rtp, live, ondemand, rtsp and whip",
        ),
        (
            "id = \"x\"",
            "id = 7",
            "line 7: streaming.mountpoint.id: expected a positive integer",
        ),
        (
            "",
            "name = \"stage\"",
            "line 9: streaming.mountpoint.name: name is missing",
        ),
        (
            "name = \"hall\"",
            "name = \"stage\"",
            "line 10: streaming.mountpoint.name: another mountpoint has this name",
        ),
        (
            "mid = 3",
            "mid = \"v\"",
            "line 14: streaming.mountpoint.media[0].mid: expected a string",
        ),
        (
            "",
            "mid = \"v\"",
            "line 12: streaming.mountpoint.media[0].mid: mid is missing",
        ),
        (
            "rtp_port_range = 5",
            "rtp_port_range = \"20001-30000\"",
            "line 3: streaming.rtp_port_range: expected ports in quotes such as \"10000-60000\", got 5",
        ),
    ] {
        assert_eq!(line(mistake, replaced), expected);
    }
    let unknown = line("mid = \"v\"\ncolour = 1", "mid = \"v\"");
    assert!(
        unknown.starts_with("line 15: streaming.mountpoint.media[0].colour: unknown key"),
        "{unknown}"
    );
    assert_eq!(
        mistakes("[streaming]\nmountpoint = 3\n"),
        [
            "line 2: streaming.mountpoint: expected sections, each written [[streaming.mountpoint]], got 3"
        ]
    );
}

#[test]
fn every_mountpoint_is_read_whatever_is_wrong_with_others() {
    let text = MOUNTPOINTS
        .replace("id = 7", "id = \"x\"")
        .replace("mid = \"v\"", "mid = 3");
    assert_eq!(
        mistakes(&text.replace("20001-30000", "one-two")),
        [
            "line 3: streaming.rtp_port_range: expected ports in quotes such as \"10000-60000\", got \"one-two\"",
            "line 7: streaming.mountpoint.id: expected a positive integer",
            "line 14: streaming.mountpoint.media[0].mid: expected a string",
        ]
    );
}
