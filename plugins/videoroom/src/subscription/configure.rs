//! Changing how the streams of a subscription are received.

use portunus_core::media::{LayerReason, Reason};
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, HandleId};

use super::answer::layer_event;
use super::change::Outcome;
use super::layers::LayerRequest;
use super::watch::last_n;
use super::{Signaling, Source};
use crate::members;
use crate::refusal::Refusal;
use crate::room::RoomState;

/// One entry of `configure`: for one stream, or for all.
#[derive(Debug)]
struct Setting {
    mid: Option<String>,
    send: Option<bool>,
    layers: LayerRequest,
}

/// A subscriber's `configure`.
#[derive(Debug)]
pub(crate) struct SubscriberConfigure {
    settings: Vec<Setting>,
    /// `send` by kind of media.
    audio: Option<bool>,
    video: Option<bool>,
    data: Option<bool>,
    restart: bool,
    update: bool,
    /// How many speakers are followed from now on.
    last_n: Option<usize>,
}

impl Setting {
    fn read(fields: Fields<'_>) -> Result<Self, FieldError> {
        for ignored in ["audio_level_average", "audio_active_packets"] {
            fields.positive(ignored)?;
        }
        Ok(Setting {
            mid: fields.string("mid")?.map(str::to_owned),
            send: fields.boolean("send")?,
            layers: LayerRequest::read(fields)?,
        })
    }
}

impl SubscriberConfigure {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let settings = match members::objects(fields, "streams")? {
            Some(entries) => entries.into_iter().map(Setting::read).collect(),
            None => Setting::read(fields).map(|setting| vec![setting]),
        };
        let settings: Vec<Setting> = settings?;
        if settings.len() > 1 && settings.iter().any(|setting| setting.mid.is_none()) {
            return Err(Refusal::value(
                "mid",
                "needed where there are several streams",
            ));
        }
        Ok(SubscriberConfigure {
            settings,
            audio: fields.boolean("audio")?,
            video: fields.boolean("video")?,
            data: fields.boolean("data")?,
            restart: fields.boolean("restart")?.unwrap_or(false),
            update: fields.boolean("update")?.unwrap_or(false),
            last_n: last_n(fields)?,
        })
    }
}

impl RoomState {
    /// Applies a subscriber's `configure`.
    pub(crate) fn configure_subscriber(
        &mut self,
        key: HandleId,
        configure: &SubscriberConfigure,
    ) -> Outcome {
        let subscriber = self.subscribers.get(&key).ok_or(Refusal::NotInRoom)?;
        if subscriber.owner_kicked {
            return Err(Refusal::Unauthorized("kicked"));
        }
        for mid in configure.settings.iter().filter_map(|s| s.mid.as_deref()) {
            if subscriber.line(mid).is_none() {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        let offers = configure.restart || configure.update;
        if offers && subscriber.lines.is_empty() {
            let text = "There is nothing to offer: subscribe first";
            return Err(Refusal::Sdp(text.to_owned()));
        }
        if let Some(last_n) = configure.last_n {
            self.follow_speakers(key, last_n)?;
        }
        self.set_sending(key, configure);
        for setting in &configure.settings {
            self.apply_setting(key, setting);
        }
        self.relay(key);
        let event = self.event();
        let Some(subscriber) = self.subscribers.get_mut(&key) else {
            return Err(Refusal::NotInRoom);
        };
        let configured = event.with("configured", "ok").into();
        if subscriber.client_offered || !offers {
            return Ok(Some((configured, None)));
        }
        subscriber.pending.restart |= configure.restart;
        if subscriber.signaling == Signaling::HaveLocalOffer {
            subscriber.pending.offer = true;
            return Ok(None);
        }
        let offer = self.offer(key)?;
        Ok(Some((configured, Some(offer))))
    }

    fn set_sending(&mut self, key: HandleId, configure: &SubscriberConfigure) {
        let subscriber = self.subscribers.get_mut(&key);
        for line in subscriber.into_iter().flat_map(|s| &mut s.lines) {
            let send = match line.kind {
                Kind::Audio => configure.audio,
                Kind::Video => configure.video,
                Kind::Data => configure.data,
            };
            line.send = send.unwrap_or(line.send);
        }
    }

    fn apply_setting(&mut self, key: HandleId, setting: &Setting) {
        let event = self.event();
        let RoomState {
            people,
            subscribers,
            ..
        } = self;
        let Some(subscriber) = subscribers.get_mut(&key) else {
            return;
        };
        let handle = subscriber.handle.clone();
        for line in &mut subscriber.lines {
            let mid = setting.mid.as_deref();
            let is_other = mid.is_some_and(|mid| mid != line.mid.as_str());
            if is_other || (line.source == Source::None && line.seat.is_none()) {
                continue;
            }
            line.send = setting.send.unwrap_or(line.send);
            if line.kind != Kind::Video {
                continue;
            }
            line.requested.apply(&setting.layers);
            let Some((_, stream)) = line.track(people) else {
                continue;
            };
            // What is wanted may be there already; then nothing will change that could be told.
            let same = |wanted: Option<u8>, now: Option<u8>| wanted.filter(|_| wanted == now);
            let (layers, now) = (&setting.layers, line.current);
            let told = match (stream.simulcast, stream.svc) {
                (true, _) => [
                    ("substream", same(layers.substream, now.substream)),
                    ("temporal", same(layers.temporal, now.temporal)),
                ],
                (false, true) => [
                    ("spatial_layer", same(layers.spatial_layer, now.spatial)),
                    ("temporal_layer", same(layers.temporal_layer, now.temporal)),
                ],
                (false, false) => continue,
            };
            for (name, layer) in told {
                if let Some(layer) = layer {
                    // It may have come for another reason, but stays for this one.
                    let best = LayerReason::Chosen(Reason::Best);
                    let bound = LayerReason::Chosen(Reason::ClientBound);
                    let why = if line.reason == Some(best) {
                        best
                    } else {
                        bound
                    };
                    let told = layer_event(&event, line.mid.as_str(), name, layer);
                    handle.push(None, told.with("reason", why.name()), None);
                }
            }
        }
    }
}
