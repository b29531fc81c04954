//! A room, as a plugin holds it.

use std::sync::Arc;

use portunus_media::{IngestId, MediaPlane, SourceRef, TrackRef};
use portunus_record::Recorder;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::announcement::FileThread;
use crate::command::{Clocks, Command, RoomId};
use crate::leg::mix_ingest;
use crate::recording::MixFile;
use crate::threads::ThreadPort;
use crate::{
    Announcement, AnnouncementId, AudioError, Encoding, Format, MixRecording, MixSource, Mixture,
    ParticipantId, ParticipantOptions, ParticipantStats, RecordingId, RtpLeg,
};

/// Where what a participant hears goes.
#[derive(Debug, Clone)]
pub enum Out {
    /// To a track of a peer.
    Track(TrackRef),
    /// To the other end of a leg of plain RTP.
    Leg(Arc<RtpLeg>),
}

/// An audio room. It ends when this is dropped: with its taps, mixes and routes. The ends of its recordings are told after that.
///
/// What is asked of it is done by its thread, in order, within 20 ms. Nothing waits but what is `async`.
#[derive(Debug)]
pub struct AudioRoom {
    pub(crate) port: Arc<RoomPort>,
}

/// The way to a room.
#[derive(Debug)]
pub(crate) struct RoomPort {
    pub(crate) room: RoomId,
    pub(crate) thread: Arc<ThreadPort>,
    pub(crate) media: MediaPlane,
    pub(crate) clocks: Clocks,
    pub(crate) format: Format,
    pub(crate) files: Arc<FileThread>,
    pub(crate) recorder: Recorder,
}

impl RoomPort {
    fn send(&self, command: Command) {
        self.thread.send(self.room, command);
    }

    #[cfg(test)]
    pub(crate) fn fault(&self, of_thread: bool) {
        self.send(Command::Fault { of_thread });
    }

    pub(crate) fn drop_mix(&self, id: u64, ingest: IngestId) {
        self.send(Command::DropMix { id });
        // Nobody waits for its end.
        let _ = self.media.remove_ingest(ingest);
    }
}

impl AudioRoom {
    pub(crate) fn new(port: RoomPort) -> Self {
        Self {
            port: Arc::new(port),
        }
    }

    /// Somebody joins: `input` is what it sends, `output` where what it hears goes. Either may come into being later. It is
    /// heard, and hears, from [`AudioRoom::connect`] on. A participant of the same number is replaced.
    pub fn join(
        &self,
        participant: ParticipantId,
        options: ParticipantOptions,
        input: Option<SourceRef>,
        output: Option<Out>,
    ) {
        self.port.send(Command::Join {
            participant,
            options: Box::new(options),
            input,
            output,
        });
    }

    /// Changes how a participant is heard, and what it hears.
    pub fn set(&self, participant: ParticipantId, options: ParticipantOptions) {
        self.port.send(Command::Set {
            participant,
            options: Box::new(options),
        });
    }

    /// A participant's media flow, or no more.
    pub fn connect(&self, participant: ParticipantId, connected: bool) {
        self.port.send(Command::Connect {
            participant,
            connected,
        });
    }

    /// Somebody leaves: its tap and its route end.
    pub fn leave(&self, participant: ParticipantId) {
        self.port.send(Command::Leave { participant });
    }

    /// Mutes all but those who are immune, or no more.
    pub fn set_muted(&self, muted: bool) {
        self.port.send(Command::Mute(muted));
    }

    /// Plays a file to the room. It is opened first: the error of one that cannot be played is what this ends with. To be
    /// called within tokio's runtime.
    pub async fn announce(
        &self,
        announcement: AnnouncementId,
        what: Announcement,
    ) -> Result<(), AudioError> {
        let Announcement {
            file,
            group,
            looping,
        } = what;
        let files = Arc::clone(&self.port.files);
        let file = blocking(move || files.open(&file, looping)).await?;
        let (reply, done) = oneshot::channel();
        self.port.send(Command::Announce {
            announcement,
            group,
            file,
            reply,
        });
        done.await.unwrap_or(Err(AudioError::Gone))
    }

    /// Ends an announcement, of which [`crate::AudioEvent::AnnouncementEnded`] tells.
    pub fn stop_announcement(&self, announcement: AnnouncementId) {
        self.port.send(Command::StopAnnouncement(announcement));
    }

    /// Records the room, and gives the file's name: nothing is written while nobody is in it. There is one at a time; those
    /// that were stopped may still be written. To be called within tokio's runtime.
    pub async fn record(
        &self,
        recording: RecordingId,
        what: MixRecording,
    ) -> Result<String, AudioError> {
        let (recorder, format) = (self.port.recorder.clone(), self.port.format);
        let (dir, name) = (what.dir.clone(), what.name.clone());
        let of = recorder.clone();
        let create = move || MixFile::create(&of, &what, format);
        let file = recorder.blocking((dir.as_deref(), &name), create).await?;
        let (reply, done) = oneshot::channel();
        self.port.send(Command::Record {
            recording,
            file,
            reply,
        });
        done.await.unwrap_or(Err(AudioError::Gone))
    }

    /// Ends the recording that there is, of which [`crate::AudioEvent::RecordingEnded`] tells.
    pub fn stop_recording(&self) {
        self.port.send(Command::StopRecording);
    }

    /// A mix for forwarders ([`MediaPlane::forward`]) and viewers. `always_on`: silence is sent while nobody is in the room.
    pub fn mix(&self, mixture: Mixture, encoding: Encoding, always_on: bool) -> MixSource {
        self.mix_on(None, mixture, encoding, always_on)
    }

    /// The same on this worker, best that of whoever receives it.
    pub(crate) fn mix_on(
        &self,
        worker: Option<usize>,
        mixture: Mixture,
        encoding: Encoding,
        always_on: bool,
    ) -> MixSource {
        let options = mix_ingest(encoding.codec, self.port.clocks, worker);
        let ingest = self.port.media.add_ingest(options);
        let id = self.port.thread.next_id();
        self.port.send(Command::Mix {
            id,
            mixture,
            encoding,
            ingest: ingest.id,
            always_on,
        });
        MixSource {
            id,
            ingest: ingest.id,
            room: Arc::clone(&self.port),
        }
    }

    /// The figures of a participant; none if it is not there. They are asked for at once.
    pub fn participant(
        &self,
        participant: ParticipantId,
    ) -> impl Future<Output = Option<ParticipantStats>> + Send + 'static + use<> {
        let (reply, stats) = oneshot::channel();
        self.port.send(Command::Stats { participant, reply });
        async move { stats.await.ok() }
    }
}

impl Drop for AudioRoom {
    fn drop(&mut self) {
        self.port.send(Command::Close);
    }
}

/// Does what may block, on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AudioError> + Send + 'static,
) -> Result<T, AudioError> {
    spawn_blocking(work).await.unwrap_or(Err(AudioError::Gone))
}
