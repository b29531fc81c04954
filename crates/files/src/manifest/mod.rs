//! Manifests: what was recorded of a room or call, in which files, and when each of them began (docs/manifest.schema.json).

mod filling;

use serde::{Deserialize, Serialize};

use crate::mjr::UnixMicros;
use filling::Size;

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// The longest manifest that is read, in bytes.
pub const MAX_MANIFEST: usize = 16 << 20;

/// The most entries of each list that is written.
pub const MAX_ENTRIES: usize = 10_000;

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is longer than any that is written.
    #[error("the manifest has more than {MAX_MANIFEST} bytes")]
    TooLong,
    /// It is no JSON, or not of this form.
    #[error("this is no manifest: {0}")]
    Form(#[from] serde_json::Error),
    /// It is of another version.
    #[error("the manifest has version {0}, and only version {VERSION} is known")]
    Version(u32),
}

/// All that was recorded of a room, a call, a mountpoint or an echo test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this form: [`VERSION`].
    pub version: u32,
    /// The server that recorded, with its version.
    pub server: String,
    /// The package of the plugin, as `janus.plugin.videoroom`.
    pub plugin: String,
    /// The room's or mountpoint's id.
    #[serde(default)]
    pub room: Option<String>,
    /// What the room or mountpoint is called.
    #[serde(default)]
    pub description: Option<String>,
    /// When it began (RFC 3339).
    pub started: String,
    /// The same in µs since 1970.
    pub started_us: u64,
    /// When it ended (RFC 3339); none while it goes on.
    #[serde(default)]
    pub ended: Option<String>,
    /// Whose files these are.
    #[serde(default)]
    pub participants: Vec<Participant>,
    /// How many participants are left out because the list is full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    #[serde(skip)]
    size: Size,
}

/// Somebody who was recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Participant {
    /// The id in the room.
    pub id: String,
    /// The name that others see.
    #[serde(default)]
    pub display: Option<String>,
    /// The files, by their beginnings.
    #[serde(default)]
    pub files: Vec<File>,
    /// What is in no file because the format has no room for it: m-lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How many files are left out because the list is full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct File {
    /// Its name, in the manifest's folder or below it.
    pub file: String,
    /// What it is: `mjr`, `opus`, `webm`, `mkv`, `mp4`.
    pub format: String,
    /// Its number among the files of one recording, from 1.
    #[serde(default = "one")]
    pub part: u32,
    /// When its time 0 is, in µs since 1970; none as long as nothing is in it.
    #[serde(default)]
    pub started_us: Option<u64>,
    /// The same in ms since the manifest began.
    #[serde(default)]
    pub offset_ms: Option<f64>,
    /// How long it is by now, in ms.
    #[serde(default)]
    pub duration_ms: f64,
    /// How long it is by now, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Why it ended; none while it is written.
    #[serde(default)]
    pub end: Option<FileEnd>,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<String>,
    /// Nothing more is written, and its end is as it should be.
    #[serde(default)]
    pub complete: bool,
    /// It is encrypted end to end.
    #[serde(default)]
    pub encrypted: bool,
    /// What is in it.
    #[serde(default)]
    pub tracks: Vec<Track>,
}

/// Why a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileEnd {
    /// The recording was stopped.
    Stopped,
    /// Whoever was recorded left, or what was recorded ended.
    Left,
    /// It could not be written any more.
    Failed,
    /// The server ended while it was written; it was repaired later.
    Crashed,
    /// The recording goes on in the next part.
    Part,
    /// The disk had no room left.
    Full,
    /// It was as long as files may be.
    Limit,
}

impl FileEnd {
    /// The word in manifests and events.
    pub const fn name(self) -> &'static str {
        match self {
            FileEnd::Stopped => "stopped",
            FileEnd::Left => "left",
            FileEnd::Failed => "failed",
            FileEnd::Crashed => "crashed",
            FileEnd::Part => "part",
            FileEnd::Full => "full",
            FileEnd::Limit => "limit",
        }
    }
}

/// A track of a file. Times are in ms since the file's time 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Track {
    /// Its number in the file, from 1.
    pub track: u32,
    /// The m-line that it came by.
    #[serde(default)]
    pub mid: String,
    /// `audio`, `video` or `data`.
    pub kind: String,
    /// The codec's name in lower case; of data `text` or `binary`.
    pub codec: String,
    /// Channels of sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u8>,
    /// What its times stand on.
    pub clock: Clock,
    /// By how much the clocks that it stands on contradict each other, in ms.
    #[serde(default)]
    pub clock_doubt_ms: Option<f64>,
    /// When its first frame is; none as long as there is none.
    #[serde(default)]
    pub offset_ms: Option<f64>,
    /// What its publisher says of it.
    #[serde(default)]
    pub description: Option<String>,
    /// Packets that are in it.
    #[serde(default)]
    pub packets: u64,
    /// Packets that never came.
    #[serde(default)]
    pub lost: u64,
    /// Packets that came too late.
    #[serde(default)]
    pub late: u64,
    /// Packets that were left out because the disk was too slow.
    #[serde(default)]
    pub dropped: u64,
    /// Time of sound that was filled, in ms.
    #[serde(default)]
    pub filled_ms: f64,
    /// Where nothing of it is.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// Which simulcast encoding it has from when on.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// Which size and rotation its pictures have from when on.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Times at which somebody talks: from, to.
    #[serde(default)]
    pub talks: Vec<(f64, f64)>,
    /// How many entries of these lists are left out because they are full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// What the times of a track stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Sender reports (RFC 3550 section 6.4.1).
    Reports,
    /// The absolute capture time that packets tell.
    Capture,
    /// The times at which packets came.
    #[default]
    Arrival,
}

/// A time of which nothing is in a track.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Its beginning.
    pub from_ms: f64,
    /// Its end.
    pub to_ms: f64,
    /// Why.
    pub why: GapReason,
}

/// Why nothing of a time is in a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GapReason {
    /// Packets were lost.
    Loss,
    /// It was muted, or nothing was let through.
    Muted,
    /// Nothing was sent.
    Silent,
    /// The disk was too slow.
    Disk,
    /// Without a keyframe nothing can be decoded.
    Keyframe,
}

/// A change of the simulcast encoding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// When.
    pub at_ms: f64,
    /// The encoding, 0 the lowest.
    pub encoding: u8,
}

/// A change of the pictures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When.
    pub at_ms: f64,
    /// In pixels; none if it is not known.
    #[serde(default)]
    pub width: Option<u32>,
    /// In pixels; none if it is not known.
    #[serde(default)]
    pub height: Option<u32>,
    /// Degrees clockwise that it has to be turned by to be upright: 0, 90, 180 or 270.
    #[serde(default)]
    pub rotation: u16,
}

impl Manifest {
    /// One that begins now, with nobody in it.
    pub fn new(server: impl Into<String>, plugin: impl Into<String>, started: UnixMicros) -> Self {
        Self {
            version: VERSION,
            server: server.into(),
            plugin: plugin.into(),
            room: None,
            description: None,
            started: rfc3339(started),
            started_us: started.0,
            ended: None,
            participants: Vec::new(),
            more: 0,
            size: Size::default(),
        }
    }

    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_MANIFEST {
            return Err(ManifestError::TooLong);
        }
        let manifest: Self = serde_json::from_slice(bytes)?;
        match manifest.version {
            VERSION => Ok(manifest),
            version => Err(ManifestError::Version(version)),
        }
    }

    /// As it stands in a file.
    pub fn to_json(&self) -> Vec<u8> {
        // Names are all text, and no number is infinite: there is nothing that JSON cannot say.
        let mut json = serde_json::to_vec_pretty(self).unwrap_or_default();
        json.push(b'\n');
        json
    }

    /// It ends at this time.
    pub fn end(&mut self, at: UnixMicros) {
        self.ended = Some(rfc3339(at));
    }
}

/// From one time to another, in ms.
pub fn offset_ms(from: UnixMicros, to: UnixMicros) -> f64 {
    let after = to.0.saturating_sub(from.0) as f64;
    let before = from.0.saturating_sub(to.0) as f64;
    (after - before) / 1_000.0
}

impl Track {
    /// Notes a gap, if there is room.
    pub fn add_gap(&mut self, gap: Gap) {
        push(&mut self.gaps, &mut self.more, gap);
    }

    /// Notes another simulcast encoding, if there is room.
    pub fn add_layer(&mut self, layer: Layer) {
        push(&mut self.layers, &mut self.more, layer);
    }

    /// Notes another size or rotation, if there is room.
    pub fn add_change(&mut self, change: Change) {
        push(&mut self.changes, &mut self.more, change);
    }

    /// Notes that somebody talked, if there is room.
    pub fn add_talk(&mut self, from_ms: f64, to_ms: f64) {
        push(&mut self.talks, &mut self.more, (from_ms, to_ms));
    }
}

fn push<T>(list: &mut Vec<T>, more: &mut u64, entry: T) {
    match list.len() < MAX_ENTRIES {
        true => list.push(entry),
        false => *more += 1,
    }
}

/// A time in UTC as RFC 3339 has it, with microseconds.
pub fn rfc3339(at: UnixMicros) -> String {
    let at = i64::try_from(at.0).unwrap_or(i64::MAX);
    let at = chrono::DateTime::from_timestamp_micros(at).unwrap_or_default();
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut manifest = Manifest::new(
            "portunus 0.1.0",
            "janus.plugin.echotest",
            UnixMicros(1_764_000_000_000_123),
        );
        assert_eq!(manifest.started, "2025-11-24T16:00:00.000123Z");
        let ann = manifest.participant("42", Some("Ann")).unwrap();
        let mut track = Track {
            track: 1,
            kind: "audio".to_owned(),
            codec: "opus".to_owned(),
            ..Track::default()
        };
        track.add_gap(Gap {
            from_ms: 1_200.0,
            to_ms: 1_240.0,
            why: GapReason::Loss,
        });
        track.add_talk(0.0, 700.5);
        ann.files.push(File {
            file: "a.webm".to_owned(),
            format: "webm".to_owned(),
            part: 1,
            end: Some(FileEnd::Left),
            tracks: vec![track],
            ..File::default()
        });
        assert_eq!(Manifest::read(&manifest.to_json()).unwrap(), manifest);
        let began = UnixMicros(manifest.started_us);
        assert_eq!(offset_ms(began, UnixMicros(began.0 + 250_000)), 250.0);
        assert_eq!(offset_ms(began, UnixMicros(began.0 - 1_000)), -1.0);
    }

    #[test]
    fn what_is_no_manifest_is_told() {
        for (bytes, word) in [
            (&b"{"[..], "no manifest"),
            (b"[]", "no manifest"),
            (
                br#"{"version":2,"server":"","plugin":"","started":"","started_us":0}"#,
                "version 2",
            ),
        ] {
            let error = Manifest::read(bytes).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let long = vec![b' '; MAX_MANIFEST + 1];
        assert!(matches!(Manifest::read(&long), Err(ManifestError::TooLong)));
    }

    #[test]
    fn lists_are_bounded() {
        let mut track = Track::default();
        for at in 0..MAX_ENTRIES + 3 {
            track.add_layer(Layer {
                at_ms: at as f64,
                encoding: 0,
            });
        }
        assert_eq!((track.layers.len(), track.more), (MAX_ENTRIES, 3));
        let mut manifest = Manifest::new("", "", UnixMicros(0));
        for id in 0..MAX_ENTRIES {
            assert!(manifest.participant(&id.to_string(), None).is_some());
        }
        assert!(manifest.participant("one more", None).is_none());
        assert!(manifest.participant("7", Some("Ann")).is_some());
        assert_eq!(manifest.more, 1);
    }
}
