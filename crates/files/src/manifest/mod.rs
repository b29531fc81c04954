//! Manifests: the recording of a room or call, its files, and their starts
//! (docs/manifest.schema.json).

mod growth;

use serde::{Deserialize, Serialize};

use crate::mjr::UnixMicros;
use growth::Size;

/// The version of the format. Others cannot be read.
pub const VERSION: u32 = 1;

/// The longest manifest that is read, in bytes.
pub const MAX_MANIFEST: usize = 16 << 20;

/// The greatest length of each written list.
pub const MAX_ENTRIES: usize = 10_000;

/// The reason why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is too long.
    #[error("the manifest has more than {MAX_MANIFEST} bytes")]
    TooLong,
    /// It is not JSON of this format.
    #[error("this is no manifest: {0}")]
    Form(#[from] serde_json::Error),
    /// It has another version.
    #[error("the manifest has version {0}, and only version {VERSION} is known")]
    Version(u32),
}

/// The recording of a room, a call, a mountpoint or an echo test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format: [`VERSION`].
    pub version: u32,
    /// The recording server with its version.
    pub server: String,
    /// The package of the plugin, such as `janus.plugin.videoroom`.
    pub plugin: String,
    /// The id of the room or mountpoint.
    #[serde(default)]
    pub room: Option<String>,
    /// The name of the room or mountpoint.
    #[serde(default)]
    pub description: Option<String>,
    /// Its start (RFC 3339).
    pub started: String,
    /// Its start in µs since 1970.
    pub started_us: u64,
    /// Its end (RFC 3339), or `None` while it goes on.
    #[serde(default)]
    pub ended: Option<String>,
    /// The owners of the files.
    #[serde(default)]
    pub participants: Vec<Participant>,
    /// The number of participants that are left out because the list is full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    #[serde(skip)]
    size: Size,
}

/// A recorded participant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Participant {
    /// The id in the room.
    pub id: String,
    /// The name that others see.
    #[serde(default)]
    pub display: Option<String>,
    /// The files, by their starts.
    #[serde(default)]
    pub files: Vec<File>,
    /// The m-lines that are in no file, because the format does not support them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The number of files that are left out because the list is full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct File {
    /// Its name, in the manifest's folder or below it.
    pub file: String,
    /// Its format: `mjr`, `opus`, `webm`, `mkv`, `mp4`.
    pub format: String,
    /// Its number among the files of a recording, from 1.
    #[serde(default = "one")]
    pub part: u32,
    /// The time of day of its time 0 in µs since 1970, or `None` while it is empty.
    #[serde(default)]
    pub started_us: Option<u64>,
    /// Its start in ms since that of the manifest.
    #[serde(default)]
    pub offset_ms: Option<f64>,
    /// Its duration so far, in ms.
    #[serde(default)]
    pub duration_ms: f64,
    /// Its length so far, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The reason for its end, or `None` while it is written.
    #[serde(default)]
    pub end: Option<FileEnd>,
    /// The error, if any.
    #[serde(default)]
    pub error: Option<String>,
    /// Whether it is finished, with a regular end.
    #[serde(default)]
    pub complete: bool,
    /// Whether it is encrypted end to end.
    #[serde(default)]
    pub encrypted: bool,
    /// Its tracks.
    #[serde(default)]
    pub tracks: Vec<Track>,
}

/// The reason for the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileEnd {
    /// The recording was stopped.
    Stopped,
    /// The participant left, or the source ended.
    Left,
    /// The file could not be written any more.
    Failed,
    /// The server ended during the recording. The file was repaired later.
    Crashed,
    /// The recording goes on in the next part.
    Part,
    /// The disk was full.
    Full,
    /// The file had the greatest length.
    Limit,
}

impl FileEnd {
    /// Returns the word in manifests and events.
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
    /// The m-line of its source.
    #[serde(default)]
    pub mid: String,
    /// `audio`, `video` or `data`.
    pub kind: String,
    /// The codec's name in lower case, or `text` or `binary` for data.
    pub codec: String,
    /// The channels of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u8>,
    /// The basis of its times.
    pub clock: Clock,
    /// The greatest contradiction between its clock and others, in ms.
    #[serde(default)]
    pub clock_doubt_ms: Option<f64>,
    /// The time of its first frame, or `None` while there is none.
    #[serde(default)]
    pub offset_ms: Option<f64>,
    /// The publisher's description.
    #[serde(default)]
    pub description: Option<String>,
    /// The packets in it.
    #[serde(default)]
    pub packets: u64,
    /// The packets that never came.
    #[serde(default)]
    pub lost: u64,
    /// The packets that came too late.
    #[serde(default)]
    pub late: u64,
    /// The packets that were dropped because the disk was too slow.
    #[serde(default)]
    pub dropped: u64,
    /// The length of filled audio, in ms.
    #[serde(default)]
    pub filled_ms: f64,
    /// The times without content.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// The changes of the simulcast encoding.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// The changes of size and rotation.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// The times at which somebody talks: start and end.
    #[serde(default)]
    pub talks: Vec<(f64, f64)>,
    /// The number of entries that are left out because these lists are full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// The basis of a track's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Sender reports (RFC 3550 section 6.4.1).
    Reports,
    /// The absolute capture times in packets.
    Capture,
    /// The arrivals of packets.
    #[default]
    Arrival,
}

/// A time without content of a track.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// The start.
    pub from_ms: f64,
    /// The end.
    pub to_ms: f64,
    /// The reason.
    pub why: GapReason,
}

/// The reason for a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GapReason {
    /// Packets were lost.
    Loss,
    /// The track was muted.
    Muted,
    /// Nothing was sent.
    Silent,
    /// The disk was too slow.
    Disk,
    /// A keyframe was missing.
    Keyframe,
}

/// A change of the simulcast encoding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// The time.
    pub at_ms: f64,
    /// The encoding, 0 the lowest.
    pub encoding: u8,
}

/// A change of the pictures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The time.
    pub at_ms: f64,
    /// In pixels, or `None` if it is unknown.
    #[serde(default)]
    pub width: Option<u32>,
    /// In pixels, or `None` if it is unknown.
    #[serde(default)]
    pub height: Option<u32>,
    /// The clockwise rotation by which it is upright, in degrees: 0, 90, 180 or 270.
    #[serde(default)]
    pub rotation: u16,
}

impl Manifest {
    /// Returns a manifest without participants.
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

    /// Reads a manifest.
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

    /// Returns the content of its file.
    pub fn to_json(&self) -> Vec<u8> {
        // This never fails: all keys are text, and all numbers are finite.
        let mut json = serde_json::to_vec_pretty(self).unwrap_or_default();
        json.push(b'\n');
        json
    }

    /// Sets the end.
    pub fn end(&mut self, at: UnixMicros) {
        self.ended = Some(rfc3339(at));
    }
}

/// Returns the difference of two times in ms.
pub fn offset_ms(from: UnixMicros, to: UnixMicros) -> f64 {
    let after = to.0.saturating_sub(from.0) as f64;
    let before = from.0.saturating_sub(to.0) as f64;
    (after - before) / 1_000.0
}

impl Track {
    /// Adds a gap, if there is room.
    pub fn add_gap(&mut self, gap: Gap) {
        push(&mut self.gaps, &mut self.more, gap);
    }

    /// Adds a change of the encoding, if there is room.
    pub fn add_layer(&mut self, layer: Layer) {
        push(&mut self.layers, &mut self.more, layer);
    }

    /// Adds a change of the pictures, if there is room.
    pub fn add_change(&mut self, change: Change) {
        push(&mut self.changes, &mut self.more, change);
    }

    /// Adds talking, if there is room.
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

/// Formats a time in UTC by RFC 3339, with microseconds.
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
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
