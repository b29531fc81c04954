//! What participants send, and the mix, into files.

use std::sync::Arc;

use portunus_audio::{AudioError, MixRecording, RecordingFormat};
use portunus_core::Object;
use portunus_core::record::{Format, RecordError, RecordingSpec, file_safe, stamped};
use portunus_resources::Id;
use serde_json::Value;

use super::participant::{Link, Participant};
use super::{RecordWish, Room, RoomState};
use crate::options::RecordFormat;
use crate::refusal::Refusal;

/// The file that the mix is recorded into.
#[derive(Debug, Default)]
pub(super) struct MixFile {
    /// Counts what was begun: what an earlier one comes to is no news.
    begun: u64,
}

impl RoomState {
    /// Checks that recordings of participants of this name could be made.
    pub(crate) fn check_recording(&self, name: Option<&str>) -> Result<(), Refusal> {
        let dir = self.options.mjrs_dir.as_deref();
        let checked = self.recorder.check(dir, name.unwrap_or("audiobridge"));
        checked.map_err(|error| Refusal::Recording(error.to_string()))
    }

    /// Records everybody, or nobody any more.
    pub(crate) fn record_people(&mut self, record: bool, dir: Option<String>) {
        if self.options.mjrs == record {
            return;
        }
        self.options.mjrs = record;
        if record {
            self.options.mjrs_dir = dir.or(self.options.mjrs_dir.take());
        }
        let ids: Vec<Id> = self.roster.iter().map(|person| person.id.clone()).collect();
        for id in &ids {
            match record {
                true => self.start_recording(id, Some(RecordWish::default())),
                false => self.stop_recording(id),
            }
        }
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
            stamped(&format!("audiobridge-{room}-user-{id}"))
        };
        let base = wish.base.clone().unwrap_or_else(name);
        let spec = RecordingSpec {
            dir: self.options.mjrs_dir.clone(),
            name: format!("{base}-audio"),
            media: person.content(),
            format: Format::Mjr,
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
                let log = |error: &RecordError| tracing::warn!(%room, %id, "not recorded: {error}");
                started.inspect_err(log).ok()
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
    ) -> Option<MixRecording> {
        if std::mem::replace(&mut self.options.record, true) {
            return None;
        }
        self.options.record_file = name.or(self.options.record_file.take());
        self.options.record_dir = dir.or(self.options.record_dir.take());
        Some(self.mix_recording())
    }

    /// What is recorded of the mix of a room that is recorded from the start.
    pub(crate) fn mix_recording(&mut self) -> MixRecording {
        self.mix_file.begun += 1;
        let room = file_safe(&self.id.to_string());
        let name = self.options.record_file.clone();
        MixRecording {
            dir: self.options.record_dir.clone(),
            name: name.unwrap_or_else(|| stamped(&format!("janus-audioroom-{room}"))),
            temporary: None,
            format: match self.options.record_format {
                RecordFormat::Wav => RecordingFormat::Wav,
                RecordFormat::Opus => RecordingFormat::OggOpus,
            },
            group: None,
        }
    }

    /// Ends the recording of the mix, if there is one.
    pub(crate) fn stop_mix_file(&mut self) {
        if std::mem::replace(&mut self.options.record, false) {
            self.sound.stop_recording();
        }
    }

    /// A recording of the mix has ended.
    pub(super) fn mix_recorded(&mut self, file: &str, error: Option<Arc<AudioError>>) {
        if let Some(error) = error {
            tracing::warn!(room = %self.id, file, "the recording of the mix has ended: {error}");
            self.options.record = false;
        }
        self.notify(None, || {
            self.notice("recordingdone")
                .with("record_file", file)
                .into()
        });
    }
}

/// Records the mix of a room; if that cannot be, its recording is switched off.
pub(crate) async fn record_mix(room: Arc<Room>, what: MixRecording) -> Result<(), Refusal> {
    let (sound, begun) = {
        let state = room.lock();
        (state.sound(), state.mix_file.begun)
    };
    let Err(error) = sound.record(what).await else {
        return Ok(());
    };
    tracing::warn!(room = %room.id, "the mix is not recorded: {error}");
    let mut state = room.lock();
    if state.mix_file.begun == begun {
        state.options.record = false;
    }
    Err(Refusal::Unknown(format!("Cannot record: {error}")))
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
