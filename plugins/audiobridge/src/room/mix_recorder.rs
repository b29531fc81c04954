//! The recording of the mix.

use std::sync::Arc;

use portunus_audio::{AudioError, MixRecording, RecordingFormat, RecordingId};
use portunus_core::record::{RecordError, Whose, file_safe, stamped};

use super::profile::Profile;
use crate::options::{RecordFormat, RoomOptions};

/// Names the recordings of the mix, and keeps them apart.
#[derive(Debug, Default)]
pub(crate) struct MixRecorder {
    /// The number of the last recording. The results of earlier ones are ignored.
    last: u64,
    /// Held while a recording starts, so that one starts after the other.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A recording of the mix that is to start.
#[derive(Debug)]
pub(crate) struct PendingRecording {
    pub(super) recording: MixRecording,
    pub(super) number: RecordingId,
    /// The name to use if the wanted one is taken, or `None` to fail.
    pub(super) other_name: Option<String>,
}

impl MixRecorder {
    /// Turns recording on, with this name and folder if given. Returns the recording to start, or
    /// `None` if one is running already.
    pub(crate) fn turn_on(
        &mut self,
        profile: &mut Profile,
        name: Option<String>,
        dir: Option<String>,
    ) -> Option<PendingRecording> {
        let options = profile.options_mut();
        if std::mem::replace(&mut options.record, true) {
            return None;
        }
        let is_named = name.is_some();
        options.record_file = name.or(options.record_file.take());
        options.record_dir = dir.or(options.record_dir.take());
        let pending = self.next(profile);
        Some(PendingRecording {
            other_name: pending.other_name.filter(|_| !is_named),
            ..pending
        })
    }

    /// Returns the recording that the room's options ask for. After a restart of the server, a
    /// file with its name may exist.
    pub(crate) fn next(&mut self, profile: &Profile) -> PendingRecording {
        self.last += 1;
        let other = stamped_name(profile);
        let options = profile.options();
        let name = options.record_file.clone();
        PendingRecording {
            recording: MixRecording {
                dir: options.record_dir.clone(),
                name: name.unwrap_or_else(|| other.clone()),
                format: match options.record_format {
                    RecordFormat::Wav => RecordingFormat::Wav,
                    RecordFormat::Opus => RecordingFormat::OggOpus,
                },
                whose: Some(Whose {
                    plugin: crate::PACKAGE,
                    room: Some(profile.id().to_string()),
                }),
            },
            number: RecordingId(self.last),
            other_name: Some(other),
        }
    }

    /// Returns the next part of a recording whose file has become too long.
    pub(super) fn continuation(&mut self, profile: &Profile) -> PendingRecording {
        let pending = self.next(profile);
        let name = pending.other_name.clone();
        let name = name.unwrap_or_else(|| stamped_name(profile));
        let recording = MixRecording {
            name,
            ..pending.recording
        };
        PendingRecording {
            recording,
            ..pending
        }
    }

    /// Whether recording is on, and this is the last recording.
    pub(super) fn is_wanted(&self, options: &RoomOptions, number: RecordingId) -> bool {
        options.record && self.is_last(number)
    }

    pub(super) fn is_last(&self, number: RecordingId) -> bool {
        self.last == number.0
    }

    pub(super) fn turn(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.turn)
    }
}

/// Returns a unique name for a recording of the mix.
fn stamped_name(profile: &Profile) -> String {
    let options = profile.options();
    let Some(name) = &options.record_file else {
        let room = file_safe(&profile.id().to_string());
        return stamped(&format!("janus-audioroom-{room}"));
    };
    let plain = name.strip_suffix(options.record_format.as_str());
    let plain = plain.and_then(|name| name.strip_suffix('.'));
    stamped(plain.unwrap_or(name))
}

/// Whether a recording failed because its name is taken.
pub(super) fn is_taken(error: &AudioError) -> bool {
    let AudioError::Record(error) = error else {
        return false;
    };
    matches!(error, RecordError::Exists(_) | RecordError::Busy(_))
}
