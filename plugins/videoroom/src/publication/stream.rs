//! An m-line of a publisher, and how that is told.

use portunus_core::media::{KeyframeCache, KeyframeInterval, TalkDetection};
use portunus_core::record::Recording;
use portunus_core::sdp::{CodecName, Kind, OfferedFlags};
use portunus_core::{Mid, Object};
use serde_json::Value;

use super::forward::Forwarder;
use crate::delay::Delay;

/// An m-line of a publisher.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) kind: Kind,
    pub(crate) mid: Mid,
    pub(crate) index: usize,
    /// Rejected, or not sent any more.
    pub(crate) disabled: bool,
    pub(crate) codec: Option<CodecName>,
    /// Those of audio, where they are not the codec's usual ones.
    pub(crate) channels: Option<u8>,
    pub(crate) description: Option<String>,
    pub(crate) opus: OfferedFlags,
    /// The format parameters, where the packets cannot be understood without them.
    pub(crate) fmtp: Option<String>,
    pub(crate) h264_profile: Option<String>,
    pub(crate) vp9_profile: Option<String>,
    pub(crate) simulcast: bool,
    pub(crate) svc: bool,
    pub(crate) extensions: ExtensionIds,
    pub(crate) delay: Delay,
    /// The publisher lets it out.
    pub(super) send: bool,
    /// A moderator does not let it out.
    pub(super) moderated: bool,
    pub(super) talk: Talk,
    /// The media plane keeps it from its last keyframe on.
    pub(super) kept: Option<KeyframeCache>,
    /// When the media plane asks for keyframes of it.
    pub(super) asked_every: Option<KeyframeInterval>,
    pub(super) recording: Option<Recording>,
    pub(super) forwarders: Vec<Forwarder>,
}

/// The numbers of the header extensions that those who take the media over need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ExtensionIds {
    pub(crate) audio_level: Option<u8>,
    pub(crate) video_orientation: Option<u8>,
    pub(crate) playout_delay: Option<u8>,
    pub(crate) dependency_descriptor: Option<u8>,
}

/// What the audio level says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Talk {
    pub(super) talking: bool,
    /// The average at its last change, in -dBov.
    pub(super) level: Option<f64>,
    /// What the media plane was asked to listen for.
    pub(super) detection: Option<TalkDetection>,
    /// The media plane was asked to measure how much is spoken.
    pub(super) measured: bool,
}

impl Stream {
    /// A new m-line of a publisher.
    pub(crate) fn new(kind: Kind, mid: Mid, index: usize) -> Self {
        Stream {
            kind,
            mid,
            index,
            disabled: true,
            codec: None,
            channels: None,
            description: None,
            opus: OfferedFlags::default(),
            fmtp: None,
            h264_profile: None,
            vp9_profile: None,
            simulcast: false,
            svc: false,
            extensions: ExtensionIds::default(),
            delay: Delay::default(),
            send: true,
            moderated: false,
            talk: Talk::default(),
            kept: None,
            asked_every: None,
            recording: None,
            forwarders: Vec::new(),
        }
    }

    /// Whether its media is relayed.
    pub(crate) fn is_open(&self) -> bool {
        !self.disabled && self.send && !self.moderated
    }

    /// The file that it is recorded into now.
    pub(super) fn recorded(&self) -> Option<String> {
        let recording = self.recording.as_ref();
        recording
            .filter(|recording| !recording.is_over())
            .map(Recording::file_name)
    }

    /// Whether it is audio that says how loud it is.
    pub(super) fn has_levels(&self) -> bool {
        self.kind == Kind::Audio && !self.disabled && self.extensions.audio_level.is_some()
    }

    /// The members that all descriptions of it for clients have.
    fn described(&self) -> Object {
        self.described_with(["h264_profile", "vp9_profile"])
    }

    /// The members that all descriptions of it have, with the names of its profiles.
    pub(super) fn described_with(&self, [h264_profile, vp9_profile]: [&str; 2]) -> Object {
        let place = Object::new()
            .with("type", medium(self.kind))
            .with("mindex", self.index)
            .with("mid", self.mid.as_str());
        if self.disabled {
            return place.with("disabled", true);
        }
        let set = |flag: bool| flag.then_some(true);
        place
            .with_some("description", self.description.as_deref())
            .with_some("codec", self.codec.map(CodecName::name))
            .with_some("stereo", set(self.opus.stereo))
            .with_some("fec", set(self.opus.fec))
            .with_some("dtx", set(self.opus.dtx))
            .with_some(h264_profile, self.h264_profile.as_deref())
            .with_some(vp9_profile, self.vp9_profile.as_deref())
            .with_some("simulcast", set(self.simulcast))
            .with_some("svc", set(self.svc))
    }

    /// As its publisher is told of it.
    pub(crate) fn own(&self) -> Value {
        let described = self.described();
        if self.disabled {
            return described.into();
        }
        described
            .with_some("audiolevel_ext_id", self.extensions.audio_level)
            .with_some("videoorient_ext_id", self.extensions.video_orientation)
            .with_some("playoutdelay_ext_id", self.extensions.playout_delay)
            .with_some(
                "dependencydesc_ext_id",
                self.extensions.dependency_descriptor,
            )
            .into()
    }

    /// As others are told of it; `talking` to those who have just come.
    pub(crate) fn public(&self, talking: bool) -> Value {
        let described = self.described();
        if self.disabled {
            return described.into();
        }
        let talk = (talking && self.has_levels()).then_some(self.talk.talking);
        described
            .with_some("talking", talk)
            .with_some("moderated", self.moderated.then_some(true))
            .into()
    }
}

/// The name of a kind of media.
pub(crate) const fn medium(kind: Kind) -> &'static str {
    match kind {
        Kind::Audio => "audio",
        Kind::Video => "video",
        Kind::Data => "data",
    }
}
