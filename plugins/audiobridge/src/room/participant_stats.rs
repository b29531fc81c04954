//! The state of a participant, for administrators.

use std::time::Duration;

use portunus_audio::ParticipantStats;
use portunus_core::{HandleId, Object};
use portunus_dsp::FRAME;
use portunus_resources::{Id, RoomContent};

use super::{Link, RoomState, RtpLink};

impl RoomState {
    /// Returns the state of a participant, or `None` if `handle` has not joined as `id`.
    pub(crate) fn participant_state(&self, id: &Id, handle: HandleId) -> Option<Object> {
        let person = self.roster.joined(id, handle)?;
        let (settings, options) = (&person.settings, self.profile.options());
        let group = settings.group.and_then(|place| options.groups.get(place));
        let recording = person.recorded.running.as_ref();
        let recording = recording.and_then(|it| it.file_names().into_iter().next());
        let is_opus = settings.codec == portunus_dsp::AudioCodec::Opus;
        let levels = person.has_levels(options);
        let rtp = match &person.link {
            Link::Rtp(rtp) => Some(rtp.state()),
            Link::None | Link::Peer(_) | Link::Phone(_) | Link::Far(_) => None,
        };
        let mixed = person.mixed(options);
        Some(
            Object::new()
                .with("state", "inroom")
                .with("room", self.id().to_json())
                .with("id", id.to_json())
                .with_some("group", group.map(String::as_str))
                .with_some("display", settings.display.as_deref())
                .with("admin", person.admin)
                .with("muted", settings.muted)
                .with("active", person.setup)
                .with_some(
                    "spatial_position",
                    options.spatial.then_some(settings.position),
                )
                .with("denoise", settings.denoise)
                .with_some("audio-recording", recording)
                .with_some("talking", levels.then_some(person.talking))
                .with("fec", mixed.encoding.fec)
                .with("expected-loss", settings.expected_loss)
                .with_some(
                    "opus-bitrate",
                    is_opus.then_some(settings.bitrate.unwrap_or(0)),
                )
                .with_some("plain-rtp", rtp)
                .with("suspended", settings.suspended),
        )
    }

    /// Requests the mixer's statistics of a participant. Returns `None` if `handle` has not joined
    /// as `id`.
    pub(crate) fn stats(
        &self,
        id: &Id,
        handle: HandleId,
    ) -> Option<impl Future<Output = Option<ParticipantStats>> + Send + use<>> {
        let person = self.roster.joined(id, handle)?;
        Some(self.mix.stats(person.number))
    }
}

/// Describes statistics to administrators.
pub(crate) fn stats_json(stats: &ParticipantStats) -> Object {
    let frames = |time: Duration| time.as_millis() / FRAME.as_millis().max(1);
    Object::new()
        .with(
            "buffer-in",
            u64::try_from(frames(stats.target)).unwrap_or(0),
        )
        .with("queue-in", u64::try_from(frames(stats.delay)).unwrap_or(0))
        // Mixes leave at once.
        .with("queue-out", 0)
        .with_some("audio-level-dBov", stats.level)
        .with("received", stats.received)
        .with("recovered", stats.recovered)
        .with("late", stats.late)
        .with("refused", stats.refused)
        .with("concealed", stats.concealed)
}

impl RtpLink {
    fn state(&self) -> Object {
        let remote = self.options.remote;
        Object::new()
            .with("local-ip", self.local_ip.as_str())
            .with("local-port", self.leg.port())
            .with_some("remote-ip", remote.map(|to| to.ip().to_string()))
            .with_some("remote-port", remote.map(|to| to.port()))
            .with("local-ssrc", self.leg.ssrc().0)
            .with_some("remote-ssrc", self.leg.remote_ssrc().map(|ssrc| ssrc.0))
    }
}
