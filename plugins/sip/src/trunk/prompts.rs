//! Prompts for callers before they enter a room. Meanwhile a caller who is asked for a pin is in an
//! audio room of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use portunus_audio::{
    Announcement, AnnouncementId, AudioCodec, AudioError, AudioEvent, AudioRoom, AudioThreads,
    Channels, Encoding, Format, Out, ParticipantId, ParticipantOptions, RoomOptions, RtpLeg,
    SampleRate,
};
use portunus_call::ServerCall;
use portunus_core::media::MediaPlane;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// A prompt for callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prompt {
    /// Asks for the pin and the pound key.
    Pin,
    /// Says that the pin was wrong.
    WrongPin,
    /// Says goodbye after too many wrong pins.
    Goodbye,
}

impl Prompt {
    /// Returns the name of its file.
    const fn file(self) -> &'static str {
        match self {
            Prompt::Pin => "pin.opus",
            Prompt::WrongPin => "wrong-pin.opus",
            Prompt::Goodbye => "goodbye.opus",
        }
    }

    /// Returns the plugin's own recording.
    const fn own(self) -> &'static [u8] {
        match self {
            Prompt::Pin => include_bytes!("../../prompts/pin.opus"),
            Prompt::WrongPin => include_bytes!("../../prompts/wrong-pin.opus"),
            Prompt::Goodbye => include_bytes!("../../prompts/goodbye.opus"),
        }
    }
}

/// The files of the prompts.
#[derive(Debug)]
pub(super) enum Prompts {
    Folder(PathBuf),
    /// The plugin's own, stored as files because rooms read files.
    Own(TempDir),
}

impl Prompts {
    /// Uses the files of a folder, or with `None` the plugin's own.
    pub(super) fn new(folder: Option<&Path>) -> io::Result<Self> {
        if let Some(folder) = folder {
            return Ok(Prompts::Folder(folder.to_owned()));
        }
        let own = TempDir::with_prefix("portunus-prompts-")?;
        for prompt in [Prompt::Pin, Prompt::WrongPin, Prompt::Goodbye] {
            fs::write(own.path().join(prompt.file()), prompt.own())?;
        }
        Ok(Prompts::Own(own))
    }

    fn file(&self, prompt: Prompt) -> PathBuf {
        let folder = match self {
            Prompts::Folder(folder) => folder,
            Prompts::Own(own) => own.path(),
        };
        folder.join(prompt.file())
    }
}

/// A room of a caller's own.
pub(super) struct Lobby {
    room: AudioRoom,
    prompts: Arc<Prompts>,
    said: u64,
    /// The events of the room, which do not matter; without a receiver nothing would be played.
    _heard: mpsc::Receiver<AudioEvent>,
}

/// The only participant.
const CALLER: ParticipantId = ParticipantId(1);

impl Lobby {
    pub(super) fn open(
        audio: &AudioThreads,
        media: &MediaPlane,
        call: &ServerCall,
        codec: AudioCodec,
        prompts: &Arc<Prompts>,
    ) -> Result<Self, AudioError> {
        let options = RoomOptions {
            format: Format {
                rate: SampleRate::Hz16000,
                channels: Channels::Mono,
            },
            loudest: 1,
            groups: 0,
        };
        let (room, heard) = audio.open(options)?;
        let leg = Arc::new(RtpLeg::of(media, Arc::clone(call.leg())));
        room.join(
            CALLER,
            caller(codec),
            Some(leg.source()),
            Some(Out::Leg(leg)),
        );
        room.connect(CALLER, true);
        Ok(Lobby {
            room,
            prompts: Arc::clone(prompts),
            said: 0,
            _heard: heard,
        })
    }

    /// Plays a prompt, and stops the one before.
    pub(super) async fn say(&mut self, prompt: Prompt) {
        self.room.stop_announcement(AnnouncementId(self.said));
        self.said += 1;
        let what = Announcement {
            file: self.prompts.file(prompt),
            group: None,
            looping: false,
        };
        if let Err(error) = self.room.announce(AnnouncementId(self.said), what).await {
            tracing::warn!("callers do not hear {}: {error}", prompt.file());
        }
    }
}

fn caller(codec: AudioCodec) -> ParticipantOptions {
    ParticipantOptions {
        codec,
        muted: true,
        suspended: false,
        immune: false,
        gain: 1.0,
        position: 0.5,
        group: None,
        denoise: false,
        levels: false,
        talk: None,
        encoding: Encoding {
            codec,
            bitrate: None,
            complexity: 4,
            fec: false,
            expected_loss: 0,
        },
    }
}
