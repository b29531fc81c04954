//! The state of the media of a call for administrators.

use portunus_core::Object;
use portunus_core::media::IngestStatus;
use portunus_core::sdp::Kind;
use portunus_core::sdp::plain::PlainMedia;
use portunus_leg::Leg;
use serde_json::{Value, json};

use crate::CallMedia;

impl CallMedia {
    /// Whether SRTP is mandatory.
    pub fn is_srtp_required(&self) -> bool {
        self.session.policy().is_mandatory()
    }

    /// Whether this side encrypts a kind of media, or any kind with `None`.
    pub fn seals(&self, kind: Option<Kind>) -> bool {
        self.any(kind, |media| media.local_key.is_some())
    }

    /// Whether the far end encrypts a kind of media, or any kind with `None`.
    pub fn opens(&self, kind: Option<Kind>) -> bool {
        self.any(kind, |media| media.remote_key.is_some())
    }

    fn any(&self, kind: Option<Kind>, is: impl Fn(&PlainMedia) -> bool) -> bool {
        let agreed = self.session.agreed().iter();
        let mut of_kind = agreed.filter(|it| kind.is_none_or(|kind| it.kind == kind));
        of_kind.any(is)
    }

    /// Returns the files of running recordings, or `None` if there are none.
    pub fn recordings(&self) -> Option<Value> {
        self.recordings.to_json()
    }

    /// Returns the statistics of the legs `audio` and `video`, if they are there.
    pub fn legs_json(&self) -> Value {
        let members = self.sides().fold(Object::new(), |members, side| {
            let agreed = self.session.agreed_on(side.kind);
            let name = match side.kind {
                Kind::Video => "video",
                Kind::Audio | Kind::Data => "audio",
            };
            members.with(name, leg_json(&side.leg, agreed))
        });
        members.into()
    }
}

fn leg_json(leg: &Leg, agreed: Option<&PlainMedia>) -> Value {
    let status = leg.status();
    let incoming: &IngestStatus = status.incoming();
    let codecs = agreed.map(|agreed| {
        let names = agreed.codecs.iter().chain(&agreed.events);
        let names: Vec<&str> = names.map(|codec| codec.spec.name.as_str()).collect();
        names
    });
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Object::new()
        .with("local_port", leg.port())
        .with_some(
            "remote",
            agreed.and_then(|it| it.rtp).map(|it| it.to_string()),
        )
        .with_some("codecs", codecs)
        .with_some(
            "transcoding",
            agreed
                .and_then(|it| it.transcoding.as_ref())
                .map(|it| json!([it.browser.name, it.far.spec.name])),
        )
        .with_some(
            "direction",
            agreed.map(|it| it.far_direction.reversed().as_str()),
        )
        .with("received", incoming.packets())
        .with("sent", status.sent())
        .with("errors", status.errors())
        .with("strangers", status.strangers())
        .with("jitter_us", micros(status.jitter()))
        .with_some("round_trip_us", status.round_trip().map(micros))
        .with("far_lost", status.far_lost())
        .into()
}
