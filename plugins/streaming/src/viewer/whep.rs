//! Watching with an offer of the client, as WHEP does.

use std::sync::Arc;

use portunus_core::sdp::{AnswerOptions, CodecName, Description, Direction, Kind, Media};
use portunus_core::{ExtensionKind, Jsep};
use serde_json::json;

use super::playback::{RequestedStreams, no_media_yet};
use super::renewal::Format;
use super::subscription::{LayerRequest, Subscription};
use super::{Answer, Phase, Session, Viewer, Watching};
use crate::mountpoint::{Live, Mountpoint, Stream};
use crate::refusal::Refusal;
use crate::spec::{MediaKind, StreamCodec};

impl Viewer {
    pub(super) fn watch_by_offer(
        self: &Arc<Self>,
        mountpoint: Arc<Mountpoint>,
        jsep: &Jsep,
        layers: LayerRequest,
    ) -> Result<Answer, Refusal> {
        let mut session = self.session();
        match &mut *session {
            Session::Publishing(_) => Err(Refusal::State("This handle publishes")),
            Session::Watching(watching) => {
                if !Arc::ptr_eq(&watching.mountpoint, &mountpoint) {
                    return Err(Refusal::State("Already watching another mountpoint"));
                }
                if watching.phase != Phase::Up || !jsep.update {
                    return Err(Refusal::State("The PeerConnection is not up yet"));
                }
                let (answer, subscriptions) = answer(&mountpoint, &jsep.description)?;
                let local = self.handle.answer(answer)?.with_e2ee(watching.is_e2ee());
                watching.offering = None;
                watching.replace(subscriptions);
                watching.set_layers(layers);
                watching.agreed(self.handle.negotiated());
                watching.disconnect_unwanted(&self.handle);
                watching.connect(&self.handle);
                self.notify("starting", &mountpoint);
                Ok((json!({ "status": "starting" }), Some(local)))
            }
            Session::Idle => {
                let (answer, subscriptions) = answer(&mountpoint, &jsep.description)?;
                let mut watching = Watching::new(mountpoint.clone());
                watching.replace(subscriptions);
                watching.e2ee |= jsep.e2ee;
                watching.set_layers(layers);
                let local = self.handle.answer(answer)?.with_e2ee(watching.is_e2ee());
                watching.agreed(self.handle.negotiated());
                watching.phase = Phase::Answered;
                self.begin(&mut session, watching)?;
                self.notify("starting", &mountpoint);
                Ok((json!({ "status": "starting" }), Some(local)))
            }
        }
    }
}

impl Watching {
    /// Takes the outcome of another offer. Unchanged m-lines keep their routes and settings.
    fn replace(&mut self, subscriptions: Vec<Subscription>) {
        let mut former = std::mem::take(&mut self.subscriptions);
        for new in subscriptions {
            let same = |old: &Subscription| (old.stream, old.line) == (new.stream, new.line);
            match former.iter().position(same) {
                Some(index) => {
                    let mut old = former.swap_remove(index);
                    old.wanted = true;
                    old.format = new.format;
                    self.subscriptions.push(old);
                }
                None => self.subscriptions.push(new),
            }
        }
        for mut gone in former {
            gone.wanted = false;
            self.subscriptions.push(gone);
        }
        let wanted = self.subscriptions.iter().filter(|s| s.wanted);
        let streams = wanted.filter_map(|s| s.stream_of(&self.mountpoint));
        self.requested = RequestedStreams::only(streams.map(Stream::mid).collect());
    }
}

/// Answers an offer: its m-lines take the mountpoint's streams in their order, by kind and codec.
fn answer(
    mountpoint: &Mountpoint,
    offer: &Description,
) -> Result<(Description, Vec<Subscription>), Refusal> {
    let mut subscriptions: Vec<Subscription> = Vec::new();
    let mut media = Vec::with_capacity(offer.media.len());
    let mut has_data = false;
    for offered in &offer.media {
        let is_free = |index: usize| subscriptions.iter().all(|s| s.stream != Some(index));
        let mut streams = mountpoint
            .streams
            .iter()
            .enumerate()
            .filter(|(index, stream)| Kind::from(stream.kind()) == offered.kind && is_free(*index));
        if offered.kind == Kind::Data {
            let streams: Vec<usize> = streams.map(|(index, _)| index).collect();
            let takes = !offered.rejected && !has_data && !streams.is_empty();
            media.push(if takes {
                answer_data(offered)
            } else {
                offered.refused()
            });
            if takes {
                has_data = true;
                let data = |index| Subscription::new(index, MediaKind::Data, offered.mid);
                subscriptions.extend(streams.into_iter().map(data));
            }
            continue;
        }
        let matched = streams.find_map(|(index, stream)| {
            let live = stream.live();
            let answered = answer_media(offered, &live, mountpoint)?;
            let mut subscription = Subscription::new(index, stream.kind(), offered.mid);
            subscription.format = Some(Format::of(&live));
            Some((subscription, answered))
        });
        match matched {
            Some((subscription, answered)) => {
                subscriptions.push(subscription);
                media.push(answered);
            }
            None => {
                let takes = !offered.rejected && offered.direction.receives();
                let awaited = |stream: &Stream| takes && Kind::from(stream.kind()) == offered.kind;
                if mountpoint.awaits_codec(awaited) {
                    return Err(no_media_yet());
                }
                media.push(inactive(offered));
            }
        }
    }
    if subscriptions.is_empty() {
        let reason = "The offer has nothing that the mountpoint could send";
        return Err(Refusal::Invalid(reason.to_owned()));
    }
    let answer = Description {
        origin: offer.origin.clone(),
        name: format!("Mountpoint {}", mountpoint.id),
        attributes: Vec::new(),
        media,
    };
    Ok((answer, subscriptions))
}

/// Answers an m-line with a stream. Returns `None` if the client does not accept the codec, or does
/// not receive.
fn answer_media(offered: &Media, live: &Live, mountpoint: &Mountpoint) -> Option<Media> {
    if offered.rejected || !offered.direction.receives() {
        return None;
    }
    let mut options = AnswerOptions {
        extensions: vec![
            ExtensionKind::AbsSendTime,
            ExtensionKind::Mid,
            ExtensionKind::AbsCaptureTime,
            ExtensionKind::PlayoutDelay,
        ],
        ..AnswerOptions::default()
    };
    if live.has_layers() {
        options.extensions.push(ExtensionKind::TransportCc);
    }
    if mountpoint.takes_publishers() {
        options.extensions.push(ExtensionKind::VideoOrientation);
    }
    let (codec, red) = match live.codec? {
        StreamCodec::Plain(codec) => (codec, false),
        StreamCodec::Red => (CodecName::Opus, true),
    };
    let spec = live.codec?.spec(live.pt, live.fmtp.as_deref());
    options.audio.channels = (!red).then(|| live.channels.unwrap_or(spec.channels));
    for media in [&mut options.audio, &mut options.video] {
        media.only(codec);
        media.direction = Direction::SendOnly;
        media.red = red;
    }
    // The parameters of redundant audio contain payload types.
    options.audio.fmtp = live.fmtp.clone().filter(|_| !red);
    options.video.profile = match codec {
        CodecName::H264 => spec.parameter("profile-level-id").map(str::to_owned),
        CodecName::Vp9 => spec.parameter("profile-id").map(str::to_owned),
        _ => None,
    };
    // Without redundant audio in the offer, the answer has its Opus alone.
    answer_line(offered, &options)
}

/// Keeps an m-line without a stream, so that it can carry the bundle.
fn inactive(offered: &Media) -> Media {
    let mut options = AnswerOptions::default();
    options.audio.direction = Direction::Inactive;
    options.video.direction = Direction::Inactive;
    let answered = match offered.rejected {
        true => None,
        false => answer_line(offered, &options),
    };
    answered.unwrap_or_else(|| offered.refused())
}

fn answer_data(offered: &Media) -> Media {
    Media {
        rejected: false,
        direction: offered.direction.answer(Direction::SendRecv),
        ..offered.refused()
    }
}

fn answer_line(offered: &Media, options: &AnswerOptions) -> Option<Media> {
    let offer = Description {
        media: vec![offered.clone()],
        ..Description::default()
    };
    let answer = Description::answer(&offer, options);
    answer.media.into_iter().find(|media| !media.rejected)
}
