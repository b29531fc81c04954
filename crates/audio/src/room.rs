//! The handle of a room, for plugins.

use std::sync::Arc;

use portunus_media::SourceRef;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::command::Command;
use crate::leg::mix_ingest;
use crate::recording::MixFile;
use crate::room_port::RoomPort;
use crate::{
    Announcement, AnnouncementId, AudioCodec, AudioError, Encoding, MixOutlet, MixRecording,
    MixSource, Mixture, Out, ParticipantId, ParticipantOptions, ParticipantStats, RecordingId,
};

/// An audio room. Dropping it ends the room with its taps, mixes and routes. The ends of its
/// recordings are reported after that.
///
/// Its thread executes commands in order, within 20 ms. Only `async` functions wait for that.
#[derive(Debug)]
pub struct AudioRoom {
    pub(crate) port: Arc<RoomPort>,
}

impl AudioRoom {
    pub(crate) fn new(port: RoomPort) -> Self {
        Self {
            port: Arc::new(port),
        }
    }

    /// Adds a participant, with its source and its output. Both may come into being later. It is
    /// heard, and hears, after [`AudioRoom::connect`]. It replaces a participant with the same
    /// number.
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

    /// Changes the options of a participant.
    pub fn set(&self, participant: ParticipantId, options: ParticipantOptions) {
        self.port.send(Command::Set {
            participant,
            options: Box::new(options),
        });
    }

    /// Starts or stops the media of a participant.
    pub fn connect(&self, participant: ParticipantId, connected: bool) {
        self.port.send(Command::Connect {
            participant,
            connected,
        });
    }

    /// Removes a participant with its tap and its route.
    pub fn leave(&self, participant: ParticipantId) {
        self.port.send(Command::Leave { participant });
    }

    /// Mutes or unmutes the room. Participants that are immune stay unmuted.
    pub fn set_muted(&self, muted: bool) {
        self.port.send(Command::Mute(muted));
    }

    /// Plays a file to the room. The file is opened first, so that its errors are returned. Needs
    /// tokio's runtime.
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

    /// Stops an announcement. [`crate::AudioEvent::AnnouncementEnded`] reports the end.
    pub fn stop_announcement(&self, announcement: AnnouncementId) {
        self.port.send(Command::StopAnnouncement(announcement));
    }

    /// Records the room, and returns the name of the file. Nothing is written while the room is
    /// empty. There is one recording at a time, but stopped ones may still be written. Needs
    /// tokio's runtime.
    pub async fn record(
        &self,
        recording: RecordingId,
        what: MixRecording,
    ) -> Result<String, AudioError> {
        let (recorder, format) = (self.port.recorder.clone(), self.port.format);
        let (dir, name) = (what.dir.clone(), what.name.clone());
        let of = recorder.clone();
        let create = move || MixFile::create(&of, &what, format);
        let file = recorder.blocking(dir.as_deref(), &name, create).await?;
        let (reply, done) = oneshot::channel();
        self.port.send(Command::Record {
            recording,
            file,
            reply,
        });
        done.await.unwrap_or(Err(AudioError::Gone))
    }

    /// Stops the recording. [`crate::AudioEvent::RecordingEnded`] reports the end.
    pub fn stop_recording(&self) {
        self.port.send(Command::StopRecording);
    }

    /// Returns a mix for forwarders ([`portunus_media::MediaPlane::forward`]) and viewers.
    /// `always_on`: silence is sent while the room is empty.
    pub fn mix(&self, mixture: Mixture, encoding: Encoding, always_on: bool) -> MixSource {
        self.mix_on(None, mixture, encoding, always_on)
    }

    /// Returns a source that carries what one participant hears, in this codec. It is silent until
    /// the participant hears a mix.
    pub fn outlet(&self, codec: AudioCodec) -> MixOutlet {
        MixOutlet::new(self.port.media.clone(), self.port.clocks, codec)
    }

    /// Returns a mix on this worker, which is best the worker of its receiver.
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

    /// Requests the statistics of a participant immediately. Returns `None` if there is no such
    /// participant.
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

/// Runs blocking work on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AudioError> + Send + 'static,
) -> Result<T, AudioError> {
    spawn_blocking(work).await.unwrap_or(Err(AudioError::Gone))
}
