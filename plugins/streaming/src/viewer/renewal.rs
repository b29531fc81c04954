//! Renewals of offers: a publisher brings other codecs, or an RTSP server answers late.

use portunus_core::Handle;
use portunus_core::sdp::CodecSpec;
use serde_json::json;
use tracing::debug;

use super::{Offering, Phase, Session, Viewer, Watching};
use crate::mountpoint::{Client, Live, Mountpoint, Stream};
use crate::spec::{MediaKind, StreamCodec};

/// The negotiated format of an m-line.
#[derive(Debug, Clone)]
pub(super) struct Format {
    pub(super) codec: Option<StreamCodec>,
    fmtp: Option<String>,
    /// The number of audio channels, if it is not the codec's usual one.
    channels: Option<u8>,
    pt: u8,
}

impl Format {
    pub(super) fn of(live: &Live) -> Self {
        Format {
            codec: live.codec,
            fmtp: live.fmtp.clone(),
            channels: live.channels,
            pt: live.pt,
        }
    }

    /// Returns the codec as it is written in an offer, or `None` while it is unknown.
    pub(super) fn spec(&self) -> Option<CodecSpec> {
        let usual = self.codec?.spec(self.pt, self.fmtp.as_deref());
        Some(CodecSpec {
            channels: self.channels.unwrap_or(usual.channels),
            ..usual
        })
    }

    /// Returns whether a receiver with this format can play `other`, whose parameters may differ.
    fn has_codec_of(&self, other: &Self) -> bool {
        (self.codec, self.channels) == (other.codec, other.channels)
    }

    /// Returns whether a receiver needs no new offer. The payload type may differ, as it stays the
    /// negotiated one.
    fn is_same(&self, other: &Self) -> bool {
        (self.codec, self.channels, &self.fmtp) == (other.codec, other.channels, &other.fmtp)
    }
}

/// The action that a viewer needs.
enum Need {
    Nothing,
    Offer,
    /// Dismissal: the negotiated codec is gone, and no offer can be made.
    Leave,
}

impl Viewer {
    /// Makes a new offer if the mountpoint's streams have changed.
    pub(super) fn renew(&self) {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return;
        };
        match watching.need() {
            Need::Nothing => {}
            Need::Offer => watching.push_offer(&self.handle),
            Need::Leave => {
                let mountpoint = watching.mountpoint.clone();
                drop(session);
                mountpoint.remove_viewer(self.id);
                self.dismiss(&mountpoint, "stopped");
            }
        }
    }
}

impl Watching {
    fn need(&self) -> Need {
        if self.phase != Phase::Up || self.offering.is_some() {
            return Need::Nothing;
        }
        let streams = || self.mountpoint.streams.iter().enumerate();
        let taken = |index: usize| {
            let of_stream = |s: &&super::Subscription| s.stream == Some(index) && s.wanted;
            self.subscriptions.iter().find(of_stream)
        };
        if self.renewable {
            let outdated = streams().any(|(index, stream)| match taken(index) {
                Some(taken) => taken.is_outdated(stream),
                None => stream.is_offerable() && self.requested.includes(stream),
            });
            return if outdated { Need::Offer } else { Need::Nothing };
        }
        let lost = streams().any(|(index, stream)| {
            let taken = taken(index).filter(|taken| taken.accepted);
            taken.is_some_and(|taken| !taken.carries(stream))
        });
        if lost { Need::Leave } else { Need::Nothing }
    }

    /// Makes an offer without a request.
    pub(super) fn push_offer(&mut self, handle: &Handle) {
        match self.offer_again(handle) {
            Ok(offer) => {
                let result = json!({ "status": Offering::Updating.name() });
                let data = json!({ "streaming": "event", "result": result });
                handle.push(None, data, Some(offer));
            }
            Err(refusal) => debug!(%refusal, "a viewer is offered nothing new"),
        }
    }

    fn offer_again(
        &mut self,
        handle: &Handle,
    ) -> Result<portunus_core::LocalJsep, crate::refusal::Refusal> {
        let requested = self.requested.clone();
        self.choose(&requested)?;
        self.disconnect_unwanted(handle);
        self.connect(handle);
        let offer = handle.offer(self.offer(), false)?;
        self.offering = Some(Offering::Updating);
        Ok(offer.with_e2ee(self.is_e2ee()))
    }

    /// Notes the formats of the next offer. An m-line with another codec is not accepted any more.
    pub(super) fn note_formats(&mut self) {
        let mountpoint = &self.mountpoint;
        for subscription in self.subscriptions.iter_mut().filter(|s| s.wanted) {
            let format = subscription.stream_of(mountpoint).and_then(Stream::format);
            // Another codec waits for the answer. With other parameters media continues.
            subscription.accepted &= have_same_codec(&subscription.format, &format);
            subscription.format = format;
        }
    }
}

impl super::Subscription {
    /// Returns whether the viewer needs an offer for the stream's present format.
    fn is_outdated(&self, stream: &Stream) -> bool {
        match (&self.format, stream.format()) {
            (Some(agreed), Some(now)) => !agreed.is_same(&now),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        }
    }

    /// Returns whether the stream's present codec is the negotiated one.
    pub(super) fn carries(&self, stream: &Stream) -> bool {
        have_same_codec(&self.format, &stream.format())
    }
}

fn have_same_codec(one: &Option<Format>, other: &Option<Format>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.has_codec_of(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

impl Stream {
    /// Returns the format. `None` for data, which is not negotiated.
    pub(super) fn format(&self) -> Option<Format> {
        (self.kind() != MediaKind::Data).then(|| Format::of(&self.live()))
    }
}

impl Mountpoint {
    /// Returns whether a wanted stream cannot be offered because its codec is still unknown.
    pub(super) fn awaits_codec(&self, wanted: impl Fn(&Stream) -> bool) -> bool {
        let unknown = |stream: &Stream| !stream.is_offerable() && wanted(stream);
        !self.is_described() && self.streams.iter().any(unknown)
    }
}
