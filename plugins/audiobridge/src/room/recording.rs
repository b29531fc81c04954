//! Starting and stopping the recordings of the mix and of participants.

use std::sync::Arc;

use portunus_audio::{AudioError, MixRecording, RecordingId};
use portunus_core::Object;
use portunus_core::record::Format;
use portunus_resources::{Id, RoomContent};
use serde_json::Value;

use super::mix_recorder::{PendingRecording, is_taken};
use super::participant::Recorded;
use super::{RecordWish, Room, RoomState};
use crate::refusal::Refusal;

impl RoomState {
    /// Records all participants, in this folder and format if given, or none.
    fn set_recording(&mut self, record: bool, dir: Option<String>, format: Option<Format>) {
        let options = self.profile.options_mut();
        if options.mjrs == record {
            return;
        }
        options.mjrs = record;
        options.mjrs_dir = dir.or(options.mjrs_dir.take());
        self.people_recorder.set_format(format);
        for id in self.roster.ids() {
            match record {
                true => self.start_recording(&id, Some(RecordWish::default())),
                false => self.stop_recording(&id),
            }
        }
    }

    /// Stops the recordings of all participants.
    pub(crate) fn stop_recording_people(&mut self) {
        self.set_recording(false, None, None);
    }

    /// Records a participant once its media flows, unless it is recorded already.
    pub(super) fn start_recording(&mut self, id: &Id, wish: Option<RecordWish>) {
        if let Some(person) = self.roster.get_mut(id)
            && person.want_recording(wish)
        {
            let muted = self.mix.is_muted();
            self.people_recorder.start(person, &self.profile, muted);
        }
    }

    /// Stops the recording of a participant.
    pub(super) fn stop_recording(&mut self, id: &Id) {
        if let Some(person) = self.roster.get_mut(id) {
            person.recorded = Recorded::default();
        }
    }

    /// Stops the recording of the mix, if there is one.
    pub(crate) fn stop_recording_mix(&mut self) {
        if std::mem::replace(&mut self.profile.options_mut().record, false) {
            self.mix.stop_recording();
        }
    }

    /// Handles the end of a recording of the mix. Returns the recording that continues it, if any.
    pub(super) fn mix_recording_ended(
        &mut self,
        number: RecordingId,
        file: &str,
        error: Option<Arc<AudioError>>,
    ) -> Option<PendingRecording> {
        let (id, options) = (self.profile.id(), self.profile.options());
        let is_wanted = self.mix_recorder.is_wanted(options, number);
        self.notify(None, || recorded_notice(id, file));
        let error = error?;
        if is_wanted && matches!(*error, AudioError::Longest) {
            tracing::info!(room = %id, file, "the recording of the mix goes on in another file");
            return Some(self.mix_recorder.continuation(&self.profile));
        }
        tracing::warn!(room = %id, file, "the recording of the mix has ended: {error}");
        if is_wanted {
            self.profile.options_mut().record = false;
        }
        None
    }
}

/// Returns the published event about a complete recording of a mix.
pub(super) fn recorded_notice(room: &Id, file: &str) -> Value {
    Object::new()
        .with("event", "recordingdone")
        .with("room", room.to_json())
        .with("record_file", file)
        .into()
}

/// Starts a recording of the mix, unless recording was turned off meanwhile. A failure turns
/// recording off.
pub(crate) async fn record_mix(room: Arc<Room>, pending: PendingRecording) -> Result<(), Refusal> {
    let PendingRecording {
        recording,
        number,
        other_name,
    } = pending;
    let turn = room.lock().mix_recorder.turn();
    let _turn = turn.lock().await;
    let sound = {
        let state = room.lock();
        if !state.is_wanted(number) {
            return Ok(());
        }
        state.mix.room()
    };
    let mut recorded = sound.record(number, recording.clone()).await;
    if let (Err(error), Some(name)) = (&recorded, other_name)
        && is_taken(error)
    {
        let recording = MixRecording { name, ..recording };
        recorded = sound.record(number, recording).await;
    }
    let mut state = room.lock();
    match recorded {
        Ok(_) if state.is_wanted(number) => Ok(()),
        Ok(_) => {
            sound.stop_recording();
            Ok(())
        }
        Err(error) => {
            tracing::warn!(room = %room.id, "the mix is not recorded: {error}");
            if state.mix_recorder.is_last(number) {
                state.profile.options_mut().record = false;
            }
            Err(Refusal::Unknown(format!("Cannot record: {error}")))
        }
    }
}

/// Records all participants of a room, in this folder and format if given, once the folder is
/// known to be writable.
pub(crate) async fn record_people(
    room: Arc<Room>,
    dir: Option<String>,
    format: Option<Format>,
) -> Result<(), Refusal> {
    let checked = {
        let state = room.lock();
        let configured = || state.profile.options().mjrs_dir.clone();
        let folder = dir.clone().or_else(configured);
        state.people_recorder.check_folder(folder)
    };
    checked.await?;
    let mut state = room.lock();
    state.profile.check_there()?;
    state.set_recording(true, dir, format);
    Ok(())
}

impl RoomState {
    fn is_wanted(&self, number: RecordingId) -> bool {
        let options = self.profile.options();
        self.mix_recorder.is_wanted(options, number)
    }
}
