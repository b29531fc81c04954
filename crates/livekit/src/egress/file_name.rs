//! The names of files: templates as LiveKit has them, and the format that a name asks for.

use std::path::Path;

use livekit_protocol::EncodedFileType;
use portunus_record::{Format, file_safe};
use portunus_sdp::{CodecName, Kind};

/// The values of the words in braces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) room_name: String,
    pub(super) room_id: String,
    /// The time of the start: `2026-11-30T091500`.
    pub(super) time: String,
    pub(super) publisher_identity: String,
    pub(super) track_id: String,
    pub(super) track_type: String,
    pub(super) track_source: String,
}

/// The kind of file that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// The one that holds the tracks as they are.
    Fitting,
    Mp4,
    WebM,
    Matroska,
    Ogg,
    Opus,
    Mp3,
}

/// How a file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Making {
    /// The format in which packets are written as they come.
    pub(super) format: Format,
    /// The extension of the file.
    pub(super) extension: &'static str,
    /// Whether ffmpeg makes the file once the recording is complete.
    pub(super) converts: bool,
}

/// A file that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileWish {
    /// Its name without an extension, with words in braces.
    template: String,
    pub(super) container: Container,
}

impl FileWish {
    /// Reads a path and a type. `default` is the template of a path that names no file.
    pub(super) fn new(path: &str, file_type: EncodedFileType, default: &str) -> Self {
        let (stem, container) = match split(path) {
            Some((stem, container)) => (stem, container),
            None => (path, of_type(file_type)),
        };
        let template = match stem.is_empty() || stem.ends_with('/') {
            true => format!("{stem}{default}"),
            false => stem.to_owned(),
        };
        FileWish {
            template,
            container,
        }
    }

    /// Returns the name without an extension.
    pub(super) fn name(&self, values: &Values) -> String {
        let mut name = String::new();
        let mut rest = self.template.as_str();
        while let Some(start) = rest.find('{') {
            let (before, word) = rest.split_at(start);
            name.push_str(before);
            let Some((known, value)) = values.find(word) else {
                name.push('{');
                rest = word.strip_prefix('{').unwrap_or_default();
                continue;
            };
            name.push_str(&file_safe(value));
            rest = word.get(known..).unwrap_or_default();
        }
        name + rest
    }
}

impl Values {
    /// Returns the values with others in place of those that are not known yet, to check a name.
    pub(super) fn complete(&self) -> Self {
        let value = || "x".to_owned();
        Values {
            publisher_identity: value(),
            track_id: value(),
            track_type: value(),
            track_source: value(),
            ..self.clone()
        }
    }

    /// Returns the value of the word in braces that a text begins with, and the length of the word.
    fn find(&self, text: &str) -> Option<(usize, &str)> {
        let words = [
            ("{room_name}", &self.room_name),
            ("{room_id}", &self.room_id),
            ("{time}", &self.time),
            ("{publisher_identity}", &self.publisher_identity),
            ("{track_id}", &self.track_id),
            ("{track_type}", &self.track_type),
            ("{track_source}", &self.track_source),
        ];
        let found = words.into_iter().find(|(word, _)| text.starts_with(word));
        found.map(|(word, value)| (word.len(), value.as_str()))
    }
}

/// Splits a known extension off.
fn split(path: &str) -> Option<(&str, Container)> {
    let extension = Path::new(path).extension()?.to_str()?;
    let container = match extension.to_ascii_lowercase().as_str() {
        "mp4" => Container::Mp4,
        "webm" => Container::WebM,
        "mkv" => Container::Matroska,
        "ogg" => Container::Ogg,
        "opus" => Container::Opus,
        "mp3" => Container::Mp3,
        _ => return None,
    };
    let stem = path.get(..path.len().checked_sub(extension.len() + 1)?)?;
    Some((stem, container))
}

const fn of_type(file_type: EncodedFileType) -> Container {
    match file_type {
        EncodedFileType::DefaultFiletype => Container::Fitting,
        EncodedFileType::Mp4 => Container::Mp4,
        EncodedFileType::Ogg => Container::Ogg,
        EncodedFileType::Mp3 => Container::Mp3,
    }
}

impl Container {
    /// Returns how a file with tracks of these codecs is made.
    pub(super) fn making(self, codecs: &[CodecName]) -> Making {
        let native = |format: Format, extension| Making {
            converts: !codecs.iter().all(|codec| format.takes(*codec)),
            format,
            extension,
        };
        let making = match self {
            Container::Fitting => {
                let mut kinds = codecs.iter().map(|codec| codec.kind());
                let has_video = kinds.any(|kind| kind == Kind::Video);
                let fits = |format: Format| codecs.iter().all(|codec| format.takes(*codec));
                let format = match has_video {
                    false if fits(Format::OggOpus) => return Container::Ogg.making(codecs),
                    _ if fits(Format::WebM) => Format::WebM,
                    _ if fits(Format::Mp4) => Format::Mp4,
                    _ => Format::Matroska,
                };
                native(format, format.extension())
            }
            Container::Mp4 => native(Format::Mp4, "mp4"),
            Container::WebM => native(Format::WebM, "webm"),
            Container::Matroska => native(Format::Matroska, "mkv"),
            Container::Ogg => native(Format::OggOpus, "ogg"),
            Container::Opus => native(Format::OggOpus, "opus"),
            Container::Mp3 => Making {
                format: Format::Matroska,
                extension: "mp3",
                converts: true,
            },
        };
        match making.converts {
            true => Making {
                format: Format::Matroska,
                ..making
            },
            false => making,
        }
    }

    /// Returns the extension of a composed film, or `None` if it cannot be composed as that.
    pub(super) const fn composed(self, audio_only: bool) -> Option<&'static str> {
        match (self, audio_only) {
            (Container::Fitting, true) | (Container::Ogg, _) => Some("ogg"),
            (Container::Opus, _) => Some("opus"),
            (Container::Fitting, false) | (Container::Mp4, _) => Some("mp4"),
            (Container::WebM, _) => Some("webm"),
            (Container::Matroska, _) => Some("mkv"),
            (Container::Mp3, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values {
            room_name: "a/../b".to_owned(),
            track_id: "TR_1".to_owned(),
            time: "2026-11-30T091500".to_owned(),
            ..Values::default()
        }
    }

    #[test]
    fn words_in_braces_are_replaced_and_lead_nowhere() {
        let name = |path: &str| {
            let wish = FileWish::new(path, EncodedFileType::DefaultFiletype, "{room_name}-{time}");
            (wish.name(&values()), wish.container)
        };
        assert_eq!(
            name("x/{room_name}/{track_id}.MP4"),
            ("x/a____b/TR_1".to_owned(), Container::Mp4)
        );
        assert_eq!(
            name(""),
            ("a____b-2026-11-30T091500".to_owned(), Container::Fitting)
        );
        assert_eq!(name("day/").0, "day/a____b-2026-11-30T091500");
        assert_eq!(name("a.b{x}{").0, "a.b{x}{");
    }

    #[test]
    fn a_file_that_cannot_hold_the_codecs_is_converted() {
        use CodecName::{H264, Opus, Pcmu, Vp8};
        let of = |container: Container, codecs: &[CodecName]| {
            let making = container.making(codecs);
            (making.format, making.extension, making.converts)
        };
        for (container, codecs, expected) in [
            (
                Container::Fitting,
                &[Opus, Vp8][..],
                (Format::WebM, "webm", false),
            ),
            (
                Container::Fitting,
                &[Opus, H264],
                (Format::Mp4, "mp4", false),
            ),
            (Container::Fitting, &[Opus], (Format::OggOpus, "ogg", false)),
            (
                Container::Fitting,
                &[Pcmu, Vp8],
                (Format::Matroska, "mkv", false),
            ),
            (Container::Mp4, &[Opus, H264], (Format::Mp4, "mp4", false)),
            (
                Container::Mp4,
                &[Opus, Vp8],
                (Format::Matroska, "mp4", true),
            ),
            (
                Container::Ogg,
                &[Opus, Vp8],
                (Format::Matroska, "ogg", true),
            ),
            (Container::Mp3, &[Opus], (Format::Matroska, "mp3", true)),
        ] {
            assert_eq!(of(container, codecs), expected, "{container:?} {codecs:?}");
        }
    }
}
