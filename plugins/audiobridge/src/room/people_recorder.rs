//! The recordings of participants.

use std::fmt::Display;

use portunus_core::media::MediaPlane;
use portunus_core::record::{
    Format, JointSpec, Participant as RecordedParticipant, RecordedSession, Recorder, SessionSpec,
    TrackSpec, WeakSession, file_safe, stamped,
};
use portunus_core::{Object, RecordingNews};
use serde_json::Value;

use super::participant::{Participant, RecordWish, Recorded, Who};
use super::profile::Profile;
use crate::refusal::Refusal;

/// The key of a participant's sound in its recording.
const SOUND: &str = "sound";
/// The start of the names of recordings.
const BASE: &str = "audiobridge";

/// Records the participants of a room.
#[derive(Debug)]
pub(crate) struct PeopleRecorder {
    recorder: Recorder,
    media: MediaPlane,
    /// The session that the recordings belong to, as long as there are any.
    session: WeakSession,
    /// The format of the files, or `None` for the configured one.
    format: Option<Format>,
}

impl PeopleRecorder {
    pub(super) fn new(recorder: Recorder, media: MediaPlane) -> Self {
        PeopleRecorder {
            recorder,
            media,
            session: WeakSession::default(),
            format: None,
        }
    }

    /// Checks that recordings with this name could be made.
    pub(crate) fn check(&self, profile: &Profile, name: Option<&str>) -> Result<(), Refusal> {
        let dir = profile.options().mjrs_dir.as_deref();
        let checked = self.recorder.check(dir, name.unwrap_or(BASE));
        checked.map_err(|error| Refusal::Recording(error.to_string()))
    }

    /// Returns a check that the folder can be written to, to be awaited without the lock.
    pub(super) fn check_folder(
        &self,
        folder: Option<String>,
    ) -> impl Future<Output = Result<(), Refusal>> + Send + use<> {
        let recorder = self.recorder.clone();
        let refused = |error: &dyn Display| Refusal::Unknown(format!("Cannot record: {error}"));
        async move {
            let checked = recorder.check_folder(folder.as_deref(), BASE).await;
            checked.map_err(|error| refused(&error))
        }
    }

    /// Sets the format of recordings that start later. `None` leaves it as it is.
    pub(super) fn set_format(&mut self, format: Option<Format>) {
        self.format = format.or(self.format);
    }

    /// Starts the wanted recording of a participant, if its media is up and none is running.
    pub(super) fn start(&mut self, person: &mut Participant, profile: &Profile, muted: bool) {
        let ready = person.setup && person.recorded.running.is_none();
        let Some(wish) = person.recorded.wanted.clone().filter(|_| ready) else {
            return;
        };
        let Some(source) = person.source() else {
            return;
        };
        let session = self.session(profile);
        let (room, id) = (profile.id().clone(), person.id.clone());
        let name = || {
            let (room, id) = (file_safe(&room.to_string()), file_safe(&id.to_string()));
            stamped(&format!("{BASE}-{room}-user-{id}"))
        };
        let format = wish.format.or(self.format);
        let spec = JointSpec {
            dir: profile.options().mjrs_dir.clone(),
            name: wish.base.clone().unwrap_or_else(name),
            format: format.unwrap_or_else(|| self.recorder.format()),
            of: Some(RecordedParticipant {
                session,
                id: id.to_string(),
                display: person.settings.display.clone(),
            }),
            tracks: vec![TrackSpec {
                key: SOUND.to_owned(),
                media: person.content(),
                from: source,
                open: person.is_heard(muted),
            }],
        };
        let event = profile.event();
        let notice = move |news: RecordingNews<'_>| recording_event(&event, &wish, news);
        person.recorded.running = match &person.who {
            Who::Client(handle) => handle.record_jointly(spec, notice),
            // A caller gets no events, and a client of another node none about recordings.
            Who::Caller(_) | Who::Far(_) => self
                .recorder
                .joint(&self.media, spec)
                .inspect_err(
                    |error| tracing::warn!(%room, %id, "a participant is not recorded: {error}"),
                )
                .ok(),
        };
    }

    /// The session of the recordings that are running, or a new one.
    fn session(&mut self, profile: &Profile) -> RecordedSession {
        let (room, options) = (profile.id().to_string(), profile.options());
        let session = self.session.upgrade().unwrap_or_else(|| {
            self.recorder.session(SessionSpec {
                plugin: crate::PACKAGE,
                dir: options.mjrs_dir.clone(),
                name: stamped(&format!("{BASE}-{}", file_safe(&room))),
                description: Some(options.description.clone()).filter(|it| !it.is_empty()),
                room: Some(room),
            })
        });
        self.session = session.downgrade();
        session
    }
}

impl Participant {
    /// Notes that a recording is wanted. Returns false if one is running already.
    pub(super) fn want_recording(&mut self, wish: Option<RecordWish>) -> bool {
        let running = self.recorded.running.as_ref();
        if running.is_some_and(|recording| !recording.is_over()) {
            return false;
        }
        self.recorded = Recorded {
            wanted: wish,
            running: None,
        };
        true
    }

    /// Opens the gate of its recording if it is heard in the mix, and closes it otherwise.
    pub(super) fn gate_recording(&mut self, room_muted: bool) {
        let open = self.is_heard(room_muted);
        if let Some(recording) = &mut self.recorded.running {
            recording.set_open(SOUND, open);
        }
    }
}

/// Returns the event about a recording for its participant.
fn recording_event(event: &Object, wish: &RecordWish, news: RecordingNews<'_>) -> Value {
    let hidden = matches!(news, RecordingNews::Failed(_)) && !wish.may_know_reason;
    let event = event.clone().with_all(news.event());
    let reason = hidden.then_some("the server cannot record this");
    event.with_some("reason", reason).into()
}
