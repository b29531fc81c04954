//! The echo of a client.

use portunus_core::media::{DataMessage, DataPayload, Layer, LayerReason, RouteId, RouteOptions};
use portunus_core::record::{RecordedMedia, stamped};
use portunus_core::sdp::{AnswerOptions, CodecName, Description, Direction, Kind, Media};
use portunus_core::{
    ClientRecording, ExtensionKind, Handle, HandleEvent, Jsep, LocalJsep, Message, Mid, Object,
    PluginHandle, Reply, SentMedia, Wish,
};
use serde_json::{Value, json};

use crate::request::{Configure, Refusal};
use crate::settings::Settings;

/// A client with its settings, and the routes from its m-lines back to them.
pub(crate) struct Echo {
    handle: Handle,
    settings: Settings,
    routes: Vec<Route>,
    layers: Layers,
    /// The first m-line with simulcast or SVC. The client gets events of its layers.
    layered: Option<Mid>,
    /// The relayed layer.
    current: Layer,
    audio_codec: Option<&'static str>,
    audio_red: bool,
    video_codec: Option<&'static str>,
    e2ee: bool,
    /// The client's last estimate of its bandwidth, in bit/s.
    peer_bitrate: u64,
    slow_links: u64,
    /// The media of the client.
    sent: Vec<SentMedia>,
    recording: Option<ClientRecording>,
}

/// The layers of the m-line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layers {
    None,
    Simulcast,
    Svc,
}

struct Route {
    mid: Mid,
    kind: Kind,
    id: RouteId,
}

impl Echo {
    pub(crate) fn new(handle: Handle) -> Self {
        Echo {
            handle,
            settings: Settings::default(),
            routes: Vec::new(),
            layers: Layers::None,
            layered: None,
            current: Layer::default(),
            audio_codec: None,
            audio_red: false,
            video_codec: None,
            e2ee: false,
            peer_bitrate: 0,
            slow_links: 0,
            sent: Vec::new(),
            recording: None,
        }
    }

    fn request(&mut self, message: &Message) -> Result<Option<LocalJsep>, Refusal> {
        let request = Configure::read(message)?;
        if request.record == Some(true) {
            let name = request.filename.as_deref().unwrap_or("echotest");
            self.handle.check_recording(None, name)?;
        }
        self.settings.apply(&request);
        self.send_present_layers(&request);
        let local = match &message.jsep {
            None => {
                self.apply_to_routes();
                if request.bitrate.is_some() {
                    self.cap_bitrate();
                }
                None
            }
            Some(jsep) => Some(self.answer(jsep, &request)?),
        };
        self.record(&request);
        Ok(local)
    }

    /// Starts and stops recording, and closes the gates of what is not echoed.
    fn record(&mut self, request: &Configure) {
        let Settings { audio, video, .. } = self.settings;
        let open = |kind| match kind {
            Kind::Audio => audio,
            Kind::Video => video,
            Kind::Data => true,
        };
        self.recording = self.recording.take().filter(|it| !it.is_over());
        match (request.record, &mut self.recording) {
            (Some(false), _) => self.recording = None,
            (_, Some(recording)) => recording.set_open(open),
            (Some(true), None) => {
                let name = match &request.filename {
                    Some(name) => name.clone(),
                    None => stamped(&format!("echotest-{}", self.handle.id())),
                };
                let wish = Wish {
                    format: request.record_format,
                    of: Some(self.handle.recorded_alone(&name)),
                };
                let (handle, sent) = (&self.handle, &self.sent);
                let tell = recording_event;
                self.recording = ClientRecording::start(handle, &name, sent, open, tell, wish);
            }
            (None, None) => {}
        }
    }

    /// Tells a client that requests its present layers, because no event will follow.
    fn send_present_layers(&self, request: &Configure) {
        let (simulcast, svc) = match self.layers {
            Layers::None => return,
            Layers::Simulcast => (self.current, Layer::default()),
            Layers::Svc => (Layer::default(), self.current),
        };
        for (name, asked, now) in [
            ("substream", request.substream, simulcast.substream),
            ("temporal", request.temporal, simulcast.temporal),
            ("spatial_layer", request.spatial_layer, svc.spatial),
            ("temporal_layer", request.temporal_layer, svc.temporal),
        ] {
            if asked.is_some() && asked == now {
                self.push_layers([(name, now)], None);
            }
        }
    }

    fn answer(&mut self, jsep: &Jsep, request: &Configure) -> Result<LocalJsep, Refusal> {
        let mut options = AnswerOptions {
            extensions: ExtensionKind::ALL.to_vec(),
            ..Default::default()
        };
        let only = |name: &str| CodecName::from_name(name).into_iter().collect();
        if let Some(name) = &request.audiocodec {
            options.audio.codecs = only(name);
        }
        if let Some(name) = &request.videocodec {
            options.video.codecs = only(name);
        }
        options.audio.red = request.opusred.unwrap_or(false);
        options.audio.fmtp = jsep.description.opus_flags().fmtp();
        options.video.profile = request.videoprofile.clone();
        options.video.profile_required = true;
        let mut answer = Description::answer(&jsep.description, &options);
        for kind in [Kind::Audio, Kind::Video] {
            // The only media to send is the client's.
            let first = answer.media.iter_mut().find(|media| media.kind == kind);
            if let Some(media) = first.filter(|media| media.direction == Direction::SendOnly) {
                media.direction = Direction::Inactive;
            }
        }
        let local = self.handle.answer(answer.clone())?;

        self.e2ee |= jsep.e2ee;
        let simulcast = jsep.simulcast.first().map(|simulcast| simulcast.mid);
        let svc = jsep.svc.first().map(|svc| svc.mid);
        (self.layers, self.layered) = match (simulcast, svc) {
            (Some(mid), _) => (Layers::Simulcast, Some(mid)),
            (None, Some(mid)) => (Layers::Svc, Some(mid)),
            // A renegotiation may omit SVC, which is not part of a description.
            (None, None) if jsep.update => (self.layers, self.layered),
            (None, None) => (Layers::None, None),
        };
        self.audio_codec = codec(&answer, Kind::Audio);
        self.audio_red = answer
            .active(Kind::Audio)
            .any(|m| m.codecs.iter().any(|c| c.is_red()));
        self.video_codec = codec(&answer, Kind::Video);
        self.sent = sent(&answer, self.e2ee);
        self.connect(&answer.media);
        if self.settings.bitrate > 0 {
            self.cap_bitrate();
        }
        Ok(local.with_e2ee(self.e2ee))
    }

    /// Routes each accepted m-line to itself.
    fn connect(&mut self, media: &[Media]) {
        let accepted = |mid| {
            media
                .iter()
                .any(|media| media.mid == mid && !media.rejected)
        };
        for route in self.routes.extract_if(.., |route| !accepted(route.mid)) {
            self.handle.remove_route(route.id);
        }
        self.apply_to_routes();
        for media in media
            .iter()
            .filter(|media| !media.rejected && media.kind != Kind::Data)
        {
            let (mid, kind) = (media.mid, media.kind);
            if self.routes.iter().any(|route| route.mid == mid) {
                continue;
            }
            let options = self.options(mid, kind);
            if let Some(id) = self.handle.route(mid, &self.handle, mid, options) {
                self.routes.push(Route { mid, kind, id });
            }
        }
    }

    fn apply_to_routes(&self) {
        for Route { mid, kind, id } in &self.routes {
            self.handle.set_route(*id, self.options(*mid, *kind));
        }
    }

    fn options(&self, mid: Mid, kind: Kind) -> RouteOptions {
        let settings = &self.settings;
        let playout_delay = settings.min_delay.zip(settings.max_delay);
        let enabled = if kind == Kind::Audio {
            settings.audio
        } else {
            settings.video
        };
        let plain = RouteOptions {
            enabled,
            playout_delay,
            ..RouteOptions::default()
        };
        if self.layered != Some(mid) {
            return plain;
        }
        RouteOptions {
            substream: settings.substream,
            spatial: settings.spatial_layer,
            temporal: match self.layers {
                Layers::Svc => settings.temporal_layer,
                Layers::Simulcast | Layers::None => settings.temporal,
            },
            fallback: settings.fallback,
            ..plain
        }
    }

    /// Returns the settings for the observers of the server.
    fn configured(&self) -> Value {
        let simulcast = || {
            json!({
                "substream": number(self.current.substream),
                "temporal-layer": number(self.current.temporal),
            })
        };
        let recording = self.recording.as_ref();
        Object::new()
            .with("audio_active", self.settings.audio)
            .with("video_active", self.settings.video)
            .with("bitrate", self.settings.bitrate)
            .with_some(
                "simulcast",
                (self.layers == Layers::Simulcast).then(simulcast),
            )
            .with_some("recording", recording.map(ClientRecording::to_json))
            .into()
    }

    fn cap_bitrate(&self) {
        let bitrate = self.settings.bitrate;
        self.handle.set_bitrate((bitrate > 0).then_some(bitrate));
    }

    fn relayed(&mut self, route: RouteId, layer: Layer, reason: LayerReason) {
        let mid = self
            .routes
            .iter()
            .find(|known| known.id == route)
            .map(|known| known.mid);
        if mid.is_none() || mid != self.layered || self.current == layer {
            return;
        }
        self.current = layer;
        let sent = layer.sent;
        let of_temporal = ("tot_temporal_layers", sent.map(|sent| sent.temporal));
        match self.layers {
            Layers::None => {}
            Layers::Simulcast => {
                let layers = [
                    ("substream", layer.substream),
                    ("temporal", layer.temporal),
                    of_temporal,
                ];
                self.push_layers(layers, Some(reason));
            }
            Layers::Svc => {
                let layers = [
                    ("spatial_layer", layer.spatial),
                    ("temporal_layer", layer.temporal),
                    ("tot_spatial_layers", sent.map(|sent| sent.spatial)),
                    of_temporal,
                ];
                self.push_layers(layers, Some(reason));
            }
        }
    }

    fn push_layers<const N: usize>(
        &self,
        layers: [(&str, Option<u8>); N],
        reason: Option<LayerReason>,
    ) {
        let codec = self.video_codec.unwrap_or("none");
        let event = Object::new().with("videocodec", codec);
        let add = |event: Object, (name, layer): (&str, Option<u8>)| event.with_some(name, layer);
        let event = layers.into_iter().fold(event, add);
        let event = event.with_some("reason", reason.map(LayerReason::name));
        self.push(None, event, None);
    }

    fn slow_link(&mut self, audio: bool, from_client: bool) {
        self.slow_links += 1;
        // A client cannot repair the other direction.
        if from_client {
            let event = Object::new()
                .with("event", "slow_link")
                .with("media", if audio { "audio" } else { "video" })
                .with_some("current-bitrate", (!audio).then_some(self.settings.bitrate));
            self.push(None, event, None);
        }
    }

    fn echo_data(&self, message: DataMessage) {
        let payload = match message.payload {
            DataPayload::Text(text) if text.is_empty() => return,
            DataPayload::Binary(bytes) if bytes.is_empty() => return,
            DataPayload::Text(text) => {
                DataPayload::Text(format!("Janus EchoTest here! You wrote: {text}"))
            }
            binary @ DataPayload::Binary(_) => binary,
        };
        self.handle.send_data(DataMessage { payload, ..message });
    }

    fn push(&self, transaction: Option<&str>, members: impl Into<Value>, jsep: Option<LocalJsep>) {
        let data = Object::new().with("echotest", "event").with_all(members);
        self.handle.push(transaction, data, jsep);
    }
}

impl PluginHandle for Echo {
    fn message(&mut self, message: Message) -> Reply {
        let transaction = Some(message.transaction.as_str());
        match self.request(&message) {
            Ok(jsep) => {
                self.push(transaction, json!({ "result": "ok" }), jsep);
                self.handle.notify(|| self.configured());
            }
            Err(refusal) => {
                let error = json!({ "error_code": refusal.code(), "error": refusal.to_string() });
                self.push(transaction, error, None);
            }
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Layer {
                route,
                layer,
                reason,
            } => self.relayed(route, layer, reason),
            HandleEvent::SlowLink {
                audio, from_client, ..
            } => self.slow_link(audio, from_client),
            HandleEvent::Remb(bitrate) => {
                self.peer_bitrate = bitrate;
                self.cap_bitrate();
            }
            HandleEvent::Data(message) => self.echo_data(message),
            HandleEvent::Hangup(_) => {
                self.push(None, json!({ "result": "done" }), None);
                // The routes ended with the PeerConnection.
                *self = Echo::new(self.handle.clone());
            }
            HandleEvent::Up
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::DataChannel { .. } => {}
        }
    }

    fn query(&self) -> Value {
        let settings = &self.settings;
        let layers = match self.layers {
            Layers::None => json!({}),
            Layers::Simulcast => json!({
                "simulcast": true,
                "substream": number(self.current.substream),
                "substream-target": settings.substream,
                "temporal-layer": number(self.current.temporal),
                "temporal-layer-target": settings.temporal,
                "fallback": u64::try_from(settings.fallback.as_micros()).unwrap_or(u64::MAX),
            }),
            Layers::Svc => json!({
                "svc": true,
                "spatial-layer": number(self.current.spatial),
                "spatial-layer-target": settings.spatial_layer,
                "temporal-layer": number(self.current.temporal),
                "temporal-layer-target": settings.temporal_layer,
            }),
        };
        Object::new()
            .with("audio_active", settings.audio)
            .with("video_active", settings.video)
            .with_some("audio_codec", self.audio_codec)
            .with_some("audio_red", self.audio_red.then_some(true))
            .with_some("video_codec", self.video_codec)
            .with("bitrate", settings.bitrate)
            .with("peer-bitrate", self.peer_bitrate)
            .with_all(layers)
            .with_some(
                "recording",
                self.recording.as_ref().map(ClientRecording::to_json),
            )
            .with_some("e2ee", self.e2ee.then_some(true))
            .with("slowlink_count", self.slow_links)
            .with("hangingup", 0)
            .with("destroyed", 0)
            .into()
    }
}

/// Returns a layer for administrators: -1 without one.
fn number(layer: Option<u8>) -> i16 {
    layer.map_or(-1, i16::from)
}

/// Returns the media of the client, from our answer.
fn sent(answer: &Description, e2ee: bool) -> Vec<SentMedia> {
    let sent = answer.media.iter().filter(|it| it.direction.receives());
    let sent = sent.filter_map(|media| {
        Some(SentMedia {
            mid: media.mid,
            kind: media.kind,
            media: RecordedMedia::answered(media)?.with_encryption(e2ee),
        })
    });
    sent.collect()
}

/// Returns an event of recordings for the client.
fn recording_event(event: Object) -> Value {
    Object::new()
        .with("echotest", "event")
        .with_all(event)
        .into()
}

/// Returns the API's name of the codec of the first m-line of `kind` that has one.
fn codec(answer: &Description, kind: Kind) -> Option<&'static str> {
    let codecs = answer.active(kind).flat_map(|media| &media.codecs);
    codecs
        .filter_map(|codec| codec.codec_name())
        .map(CodecName::name)
        .next()
}
