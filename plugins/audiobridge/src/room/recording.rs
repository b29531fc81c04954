//! What participants send, and the mix, into files.

use std::fmt::Display;
use std::sync::Arc;

use portunus_audio::{AudioError, MixRecording, RecordingFormat, RecordingId};
use portunus_core::Object;
use portunus_core::record::{Format, RecordError, RecordingSpec, file_safe, stamped};
use portunus_resources::Id;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::participant::{Link, Participant};
use super::{RecordWish, Room, RoomState};
use crate::options::RecordFormat;
use crate::refusal::Refusal;

/// What names of recordings of participants begin with.
const BASE: &str = "audiobridge";

/// The file that the mix is recorded into.
#[derive(Debug, Default)]
pub(super) struct MixFile {
    /// Counts what was begun: what an earlier one comes to is no news.
    begun: u64,
    /// One file after the other: held until it is known what a recording has come to.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A recording of the mix that is to begin.
#[derive(Debug)]
pub(crate) struct BegunRecording {
    what: MixRecording,
    number: u64,
}

impl RoomState {
    /// Checks that recordings of participants of this name could be made.
    pub(crate) fn check_recording(&self, name: Option<&str>) -> Result<(), Refusal> {
        let dir = self.options.mjrs_dir.as_deref();
        let checked = self.recorder.check(dir, name.unwrap_or(BASE));
        checked.map_err(|error| Refusal::Recording(error.to_string()))
    }

    /// Whether everybody is recorded.
    pub(crate) const fn records_people(&self) -> bool {
        self.options.mjrs
    }

    /// Records everybody, in this folder if one is said, or nobody any more.
    fn record_people(&mut self, record: bool, dir: Option<String>) {
        if self.options.mjrs == record {
            return;
        }
        self.options.mjrs = record;
        self.options.mjrs_dir = dir.or(self.options.mjrs_dir.take());
        let ids: Vec<Id> = self.roster.iter().map(|person| person.id.clone()).collect();
        for id in &ids {
            match record {
                true => self.start_recording(id, Some(RecordWish::default())),
                false => self.stop_recording(id),
            }
        }
    }

    /// Records nobody any more.
    pub(crate) fn stop_recording_people(&mut self) {
        self.record_people(false, None);
    }

    /// Records somebody, unless it is already, from the moment on that its media flows.
    pub(super) fn start_recording(&mut self, id: &Id, wish: Option<RecordWish>) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let running = person.recorded.running.as_ref();
        if running.is_some_and(|recording| !recording.is_over()) {
            return;
        }
        person.recorded.running = None;
        person.recorded.wanted = wish;
        self.record_person(id);
    }

    /// Ends the recording of somebody.
    pub(super) fn stop_recording(&mut self, id: &Id) {
        if let Some(person) = self.roster.get_mut(id) {
            person.recorded = super::participant::Recorded::default();
        }
    }

    /// Begins the recording of somebody whose media flows, if it is asked for and does not run.
    pub(super) fn record_person(&mut self, id: &Id) {
        let room = self.id.clone();
        let failed = self.event().with("event", "recording_failed");
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let ready = person.setup && person.recorded.running.is_none();
        let Some(wish) = person.recorded.wanted.clone().filter(|_| ready) else {
            return;
        };
        let name = || {
            let (room, id) = (file_safe(&room.to_string()), file_safe(&id.to_string()));
            stamped(&format!("{BASE}-{room}-user-{id}"))
        };
        let base = wish.base.clone().unwrap_or_else(name);
        let spec = RecordingSpec {
            dir: self.options.mjrs_dir.clone(),
            name: format!("{base}-audio"),
            media: person.content(),
            format: Format::Mjr,
            of: None,
        };
        let open = person.is_heard(self.muted);
        person.recorded.running = match &person.link {
            Link::None => None,
            Link::Peer(peer) => {
                let failed = move |error: &RecordError| not_recorded(failed, &wish, error);
                person.handle.record(peer.line.mid, open, spec, failed)
            }
            Link::Rtp(rtp) => {
                let started = self
                    .recorder
                    .start(&self.media, rtp.leg.source(), open, spec);
                let handle = person.handle.clone();
                match started {
                    Ok(recording) => {
                        let outcome = recording.outcome();
                        tokio::spawn(async move {
                            if let Err(error) = outcome.ended().await {
                                handle.push(None, not_recorded(failed, &wish, &error), None);
                            }
                        });
                        Some(recording)
                    }
                    Err(error) => {
                        tracing::warn!(%room, %id, "not recorded: {error}");
                        handle.push(None, not_recorded(failed, &wish, &error), None);
                        None
                    }
                }
            }
        };
    }

    /// Lets what somebody sends into its recording, or not, as it is let into the mix.
    pub(super) fn gate_recording(&mut self, id: &Id) {
        let muted = self.muted;
        if let Some(person) = self.roster.get_mut(id) {
            gate(person, muted);
        }
    }

    /// What is to be recorded of the mix; none if it is recorded already.
    pub(crate) fn begin_mix_file(
        &mut self,
        name: Option<String>,
        dir: Option<String>,
    ) -> Option<BegunRecording> {
        if std::mem::replace(&mut self.options.record, true) {
            return None;
        }
        self.options.record_file = name.or(self.options.record_file.take());
        self.options.record_dir = dir.or(self.options.record_dir.take());
        Some(self.mix_recording())
    }

    /// What is recorded of the mix of a room that is recorded from the start.
    pub(crate) fn mix_recording(&mut self) -> BegunRecording {
        self.mix_file.begun += 1;
        let room = file_safe(&self.id.to_string());
        let name = self.options.record_file.clone();
        let what = MixRecording {
            dir: self.options.record_dir.clone(),
            name: name.unwrap_or_else(|| stamped(&format!("janus-audioroom-{room}"))),
            format: match self.options.record_format {
                RecordFormat::Wav => RecordingFormat::Wav,
                RecordFormat::Opus => RecordingFormat::OggOpus,
            },
        };
        let number = self.mix_file.begun;
        BegunRecording { what, number }
    }

    /// Whether this is what is to be recorded of the mix now.
    fn is_wanted(&self, number: u64) -> bool {
        self.options.record && self.mix_file.begun == number
    }

    /// Ends the recording of the mix, if there is one.
    pub(crate) fn stop_mix_file(&mut self) {
        if std::mem::replace(&mut self.options.record, false) {
            self.sound.stop_recording();
        }
    }

    /// A recording of the mix has ended: the present one, or one before.
    pub(super) fn mix_recorded(
        &mut self,
        recording: RecordingId,
        file: &str,
        error: Option<Arc<AudioError>>,
    ) {
        if let Some(error) = error {
            tracing::warn!(room = %self.id, file, "the recording of the mix has ended: {error}");
            if self.is_wanted(recording.0) {
                self.options.record = false;
            }
        }
        self.notify(None, || {
            self.notice("recordingdone")
                .with("record_file", file)
                .into()
        });
    }
}

/// Records the mix of a room; if that cannot be, its recording is switched off. It may be switched off before the file is there.
pub(crate) async fn record_mix(room: Arc<Room>, begun: BegunRecording) -> Result<(), Refusal> {
    let BegunRecording { what, number } = begun;
    let turn = Arc::clone(&room.lock().mix_file.turn);
    let _turn = turn.lock().await;
    let sound = {
        let state = room.lock();
        if !state.is_wanted(number) {
            return Ok(());
        }
        state.sound()
    };
    let recorded = sound.record(RecordingId(number), what).await;
    let mut state = room.lock();
    match recorded {
        Ok(_) if state.is_wanted(number) => Ok(()),
        Ok(_) => {
            sound.stop_recording();
            Ok(())
        }
        Err(error) => {
            tracing::warn!(room = %room.id, "the mix is not recorded: {error}");
            if state.mix_file.begun == number {
                state.options.record = false;
            }
            Err(Refusal::Unknown(format!("Cannot record: {error}")))
        }
    }
}

/// Records everybody in a room, in this folder if one is said, once it is known that it can be written to.
pub(crate) async fn record_people(room: Arc<Room>, dir: Option<String>) -> Result<(), Refusal> {
    let (recorder, folder) = {
        let state = room.lock();
        let folder = dir.clone().or_else(|| state.options.mjrs_dir.clone());
        (state.recorder.clone(), folder)
    };
    let refused = |error: &dyn Display| Refusal::Unknown(format!("Cannot record: {error}"));
    let checked = spawn_blocking(move || recorder.check_folder(folder.as_deref(), BASE)).await;
    let checked = checked.map_err(|error| refused(&error))?;
    checked.map_err(|error| refused(&error))?;
    let mut state = room.lock();
    if state.destroyed {
        return Err(Refusal::NoSuchRoom(state.id.clone()));
    }
    state.record_people(true, dir);
    Ok(())
}

fn gate(person: &mut Participant, room_muted: bool) {
    let open = person.is_heard(room_muted);
    if let Some(recording) = &mut person.recorded.running {
        recording.set_open(open);
    }
}

fn not_recorded(event: Object, wish: &RecordWish, error: &RecordError) -> Value {
    let reason = match wish.told_why {
        true => error.to_string(),
        false => "the server cannot record this".to_owned(),
    };
    event.with("reason", reason).into()
}
