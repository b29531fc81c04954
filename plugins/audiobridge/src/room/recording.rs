//! What participants send, and the mix, into files.

use std::fmt::Display;
use std::sync::Arc;

use portunus_audio::{AudioError, MixRecording, RecordingFormat, RecordingId};
use portunus_core::record::{
    Format, JointSpec, Participant as Recorded, RecordError, SessionSpec, TrackSpec, Whose,
    file_safe, stamped,
};
use portunus_core::{Object, RecordingNews};
use portunus_resources::{Id, RoomContent};
use serde_json::Value;

use super::participant::{Link, Participant};
use super::{RecordWish, Room, RoomState, Who};
use crate::options::RecordFormat;
use crate::plugin::PACKAGE;
use crate::refusal::Refusal;

/// What a participant's sound is called in its recording.
const SOUND: &str = "sound";
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
    /// What it is called if there is a file of its name; none: it was asked for by that name just now.
    other: Option<String>,
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

    /// Records everybody, in this folder and format if they are said, or nobody any more.
    fn record_people(&mut self, record: bool, dir: Option<String>, format: Option<Format>) {
        if self.options.mjrs == record {
            return;
        }
        self.options.mjrs = record;
        self.options.mjrs_dir = dir.or(self.options.mjrs_dir.take());
        self.people_format = format.or(self.people_format);
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
        self.record_people(false, None, None);
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
        let event = self.event();
        let (recorder, recorded) = (self.recorder.clone(), self.recorded.clone());
        let (dir, format) = (self.options.mjrs_dir.clone(), self.people_format);
        let description = Some(self.options.description.clone()).filter(|it| !it.is_empty());
        let muted = self.muted;
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
        let of = recorded.upgrade().unwrap_or_else(|| {
            recorder.session(SessionSpec {
                plugin: "janus.plugin.audiobridge",
                dir: dir.clone(),
                name: stamped(&format!("{BASE}-{}", file_safe(&room.to_string()))),
                room: Some(room.to_string()),
                description,
            })
        });
        self.recorded = of.downgrade();
        let format = wish.format.or(format).unwrap_or_else(|| recorder.format());
        let (source, mid) = match &person.link {
            Link::None => return,
            Link::Peer(peer) => (
                person
                    .who
                    .handle()
                    .and_then(|handle| handle.track(peer.line.mid))
                    .map(Into::into),
                Some(peer.line.mid),
            ),
            Link::Rtp(rtp) => (Some(rtp.leg.source()), None),
            Link::Phone(leg) => (Some(leg.source()), None),
        };
        let mid = mid.map(|mid| mid.as_str().to_owned());
        let Some(from) = source else {
            return;
        };
        let spec = JointSpec {
            dir,
            name: wish.base.clone().unwrap_or_else(name),
            format,
            of: Some(Recorded {
                session: of,
                id: id.to_string(),
                display: person.settings.display.clone(),
            }),
            tracks: vec![TrackSpec {
                key: SOUND.to_owned(),
                media: person.content().with_mid(mid),
                from,
                open: person.is_heard(muted),
            }],
        };
        let tell = move |news: RecordingNews<'_>| told(&event, &wish, news);
        person.recorded.running = match &person.who {
            Who::Client(handle) => handle.record_jointly(spec, tell),
            // Nobody is there to be told.
            Who::Caller(_) => recorder
                .joint(&self.media, spec)
                .inspect_err(
                    |error| tracing::warn!(%room, %id, "a caller is not recorded: {error}"),
                )
                .ok(),
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
        let is_asked_for = name.is_some();
        self.options.record_file = name.or(self.options.record_file.take());
        self.options.record_dir = dir.or(self.options.record_dir.take());
        let begun = self.mix_recording();
        Some(BegunRecording {
            other: begun.other.filter(|_| !is_asked_for),
            ..begun
        })
    }

    /// What is recorded of the mix of a room that is recorded from the start. It was recorded before, if the server was started again.
    pub(crate) fn mix_recording(&mut self) -> BegunRecording {
        self.mix_file.begun += 1;
        let other = self.stamped_name();
        let name = self.options.record_file.clone();
        let what = MixRecording {
            dir: self.options.record_dir.clone(),
            name: name.unwrap_or_else(|| other.clone()),
            format: match self.options.record_format {
                RecordFormat::Wav => RecordingFormat::Wav,
                RecordFormat::Opus => RecordingFormat::OggOpus,
            },
            whose: Some(Whose {
                plugin: PACKAGE,
                room: Some(self.id.to_string()),
            }),
        };
        BegunRecording {
            what,
            number: self.mix_file.begun,
            other: Some(other),
        }
    }

    /// A name of a recording of the mix that no other has.
    fn stamped_name(&self) -> String {
        let Some(name) = &self.options.record_file else {
            let room = file_safe(&self.id.to_string());
            return stamped(&format!("janus-audioroom-{room}"));
        };
        let plain = name.strip_suffix(self.options.record_format.as_str());
        let plain = plain.and_then(|name| name.strip_suffix('.'));
        stamped(plain.unwrap_or(name))
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

    /// A recording of the mix has ended: the present one, or one before. Gives what is recorded in its place, if it goes on.
    pub(super) fn mix_recorded(
        &mut self,
        recording: RecordingId,
        file: &str,
        error: Option<Arc<AudioError>>,
    ) -> Option<BegunRecording> {
        let is_wanted = self.is_wanted(recording.0);
        self.notify(None, || recorded_notice(&self.id, file));
        let error = error?;
        if is_wanted && matches!(*error, AudioError::Longest) {
            tracing::info!(room = %self.id, file, "the recording of the mix goes on in another file");
            let begun = self.mix_recording();
            let name = begun.other.clone().unwrap_or_else(|| self.stamped_name());
            let what = MixRecording { name, ..begun.what };
            return Some(BegunRecording { what, ..begun });
        }
        tracing::warn!(room = %self.id, file, "the recording of the mix has ended: {error}");
        if is_wanted {
            self.options.record = false;
        }
        None
    }
}

/// What whoever watches the server is told of a recording of the mix of a room that has ended.
pub(super) fn recorded_notice(room: &Id, file: &str) -> Value {
    Object::new()
        .with("event", "recordingdone")
        .with("room", room.to_json())
        .with("record_file", file)
        .into()
}

/// Records the mix of a room; if that cannot be, its recording is switched off. It may be switched off before the file is there.
pub(crate) async fn record_mix(room: Arc<Room>, begun: BegunRecording) -> Result<(), Refusal> {
    let BegunRecording {
        what,
        number,
        other,
    } = begun;
    let turn = Arc::clone(&room.lock().mix_file.turn);
    let _turn = turn.lock().await;
    let sound = {
        let state = room.lock();
        if !state.is_wanted(number) {
            return Ok(());
        }
        state.sound()
    };
    let mut recorded = sound.record(RecordingId(number), what.clone()).await;
    if let (Err(error), Some(name)) = (&recorded, other)
        && is_taken(error)
    {
        let what = MixRecording { name, ..what };
        recorded = sound.record(RecordingId(number), what).await;
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
            if state.mix_file.begun == number {
                state.options.record = false;
            }
            Err(Refusal::Unknown(format!("Cannot record: {error}")))
        }
    }
}

/// Records everybody in a room, in this folder and format if they are said, once it is known that the folder can be written to.
pub(crate) async fn record_people(
    room: Arc<Room>,
    dir: Option<String>,
    format: Option<Format>,
) -> Result<(), Refusal> {
    let (recorder, folder) = {
        let state = room.lock();
        let folder = dir.clone().or_else(|| state.options.mjrs_dir.clone());
        (state.recorder.clone(), folder)
    };
    let refused = |error: &dyn Display| Refusal::Unknown(format!("Cannot record: {error}"));
    let checked = recorder.check_folder(folder.as_deref(), BASE).await;
    checked.map_err(|error| refused(&error))?;
    let mut state = room.lock();
    if state.destroyed {
        return Err(Refusal::NoSuchRoom(state.id.clone()));
    }
    state.record_people(true, dir, format);
    Ok(())
}

/// Whether there is a file of that name.
fn is_taken(error: &AudioError) -> bool {
    let AudioError::Record(error) = error else {
        return false;
    };
    matches!(error, RecordError::Exists(_) | RecordError::Busy(_))
}

fn gate(person: &mut Participant, room_muted: bool) {
    let open = person.is_heard(room_muted);
    if let Some(recording) = &mut person.recorded.running {
        recording.set_open(SOUND, open);
    }
}

/// What a participant is told of its recording.
fn told(event: &Object, wish: &RecordWish, news: RecordingNews<'_>) -> Value {
    let hidden = matches!(news, RecordingNews::Failed(_)) && !wish.told_why;
    let event = event.clone().with_all(news.event());
    let reason = hidden.then_some("the server cannot record this");
    event.with_some("reason", reason).into()
}
