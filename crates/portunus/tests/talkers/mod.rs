//! Clients of audio rooms, by HTTP and with real PeerConnections and Opus: each talks with a tone of
//! its own.
#![allow(dead_code, reason = "each test uses some of it")]

use std::f32::consts::TAU;
use std::time::{Duration, Instant};

use opusic_c::{Application, Channels, Decoder, Encoder, SampleRate};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};

use crate::nodes::events::Events;
use crate::server::{ask, attach_to, post};

pub const PACKAGE: &str = "janus.plugin.audiobridge";
const FRAME: Duration = Duration::from_millis(20);
const RATE: u32 = 48_000;
/// The id of the extension with a packet's level.
const LEVEL: u8 = 1;
/// The least loudness of an audible tone, and the greatest of an inaudible one.
const LOUD: f32 = 0.03;
const SILENT: f32 = 0.003;

/// A client.
pub struct Talker {
    pub handle: String,
    peer: Peer,
    events: Events,
    encoder: Encoder,
    decoder: Decoder,
    /// In Hz.
    pub tone: f32,
    pub is_silent: bool,
    frame: u32,
    heard: Vec<f32>,
}

/// The data of the plugin in an event.
fn data(event: &Value) -> &Value {
    &event["plugindata"]["data"]
}

fn offer(direction: Direction) -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, direction);
    let fec = Some("useinbandfec=1".to_owned());
    audio.add_codec(CodecName::Opus, None, fec);
    audio.extensions.push((ExtensionKind::AudioLevel, LEVEL));
    Description::offer(OfferOptions {
        media: vec![audio],
        ..Default::default()
    })
}

impl Talker {
    /// A client that has joined nothing.
    pub async fn idle(api: &str, tone: f32) -> Self {
        let handle = attach_to(api, PACKAGE);
        let events = Events::of(&handle);
        let (channels, rate) = (Channels::Mono, SampleRate::Hz48000);
        Talker {
            handle,
            peer: Peer::offering().await,
            events,
            encoder: Encoder::new(channels, rate, Application::Voip).unwrap(),
            decoder: Decoder::new(Channels::Mono, SampleRate::Hz48000).unwrap(),
            tone,
            is_silent: false,
            frame: 0,
            heard: Vec::new(),
        }
    }

    /// Sends a request with an offer, and connects. Returns the answer, too.
    async fn connected(
        api: &str,
        tone: f32,
        request: Value,
        direction: Direction,
    ) -> (Self, Value) {
        let mut talker = Talker::idle(api, tone).await;
        let offer = talker.peer.offer(offer(direction));
        talker.send(request, Some(&offer));
        let answer = talker.until_event(|event| !event["transaction"].is_null());
        let sdp = answer["jsep"]["sdp"].as_str();
        talker
            .peer
            .accept(sdp.unwrap_or_else(|| panic!("no answer in {answer}")));
        talker.peer.connect().await;
        talker.until_event(|event| event["janus"] == "webrtcup");
        (talker, data(&answer).clone())
    }

    /// A participant that talks with a tone.
    pub async fn join(api: &str, tone: f32, request: Value) -> (Self, Value) {
        Self::connected(api, tone, request, Direction::SendRecv).await
    }

    /// A listener, who is no participant.
    pub async fn listen(api: &str, request: Value) -> Self {
        let (mut talker, answer) = Self::connected(api, 0.0, request, Direction::RecvOnly).await;
        assert_eq!(answer["audiobridge"], "listening", "{answer}");
        talker.is_silent = true;
        talker
    }

    pub fn send(&self, body: Value, offer: Option<&str>) {
        let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
        if let Some(sdp) = offer {
            message["jsep"] = json!({ "type": "offer", "sdp": sdp });
        }
        let reply = post(&self.handle, &message);
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// Asks the plugin for something that it answers at once.
    pub fn ask(&self, body: Value) -> Value {
        ask(&self.handle, body)
    }

    /// Sends a request, and returns the event that answers it.
    #[track_caller]
    pub fn request(&mut self, body: Value) -> Value {
        self.send(body, None);
        let answer = self.until_event(|event| !event["transaction"].is_null());
        data(&answer).clone()
    }

    /// Waits for data of the plugin.
    #[track_caller]
    pub fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        data(&self.until_event(|event| holds(data(event)))).clone()
    }

    #[track_caller]
    pub fn until_event(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        self.events.until(holds)
    }

    /// Sends the next frame, and lets time pass until `deadline`.
    async fn turn(&mut self, deadline: Instant) {
        if !self.is_silent {
            let count = RATE / 50;
            let at = |n: u32| (self.frame * count + n) as f32 / RATE as f32;
            let sample = |n| 0.25 * (TAU * self.tone * at(n)).sin();
            let samples: Vec<f32> = (0..count).map(sample).collect();
            let mut packet = vec![0; 1_276];
            let len = self.encoder.encode_float_to_slice(&samples, &mut packet);
            packet.truncate(len.unwrap());
            // -20 dBov, with the bit for a voice.
            let level: &[(u8, &[u8])] = &[(LEVEL, &[0x80 | 20])];
            let timestamp = self.frame.wrapping_mul(count);
            self.peer.send_with(0, timestamp, level, &packet).await;
        }
        self.frame += 1;
        self.peer.run_until(|_| Instant::now() >= deadline).await;
        for packet in std::mem::take(&mut self.peer.packets) {
            let mut sound = [0.0; 5_760];
            let decoder = &mut self.decoder;
            let count = decoder.decode_float_to_slice(&packet.payload, &mut sound, false);
            self.heard.extend(&sound[..count.unwrap()]);
        }
    }

    /// Returns the loudness of `tone` in the last 200 ms, as the amplitude of a sine.
    fn loudness(&self, tone: f32) -> f32 {
        let window = RATE as usize / 5;
        let Some(start) = self.heard.len().checked_sub(window) else {
            return 0.0;
        };
        let (mut sine, mut cosine) = (0.0_f32, 0.0_f32);
        for (n, sample) in self.heard[start..].iter().enumerate() {
            let phase = TAU * tone * n as f32 / RATE as f32;
            sine += sample * phase.sin();
            cosine += sample * phase.cos();
        }
        2.0 * sine.hypot(cosine) / window as f32
    }

    pub fn hears(&self, tone: f32) -> bool {
        self.loudness(tone) > LOUD
    }

    pub fn is_deaf_to(&self, tone: f32) -> bool {
        self.heard.len() > RATE as usize / 5 && self.loudness(tone) < SILENT
    }
}

/// Lets all of them talk until `done`, 30 s at most.
pub async fn talk(
    talkers: &mut [&mut Talker],
    what: &str,
    mut done: impl FnMut(&[&mut Talker]) -> bool,
) {
    let mut deadline = Instant::now();
    for _ in 0..1_500 {
        deadline += FRAME;
        let turns = talkers.iter_mut().map(|talker| talker.turn(deadline));
        futures_util::future::join_all(turns).await;
        if done(talkers) {
            return;
        }
    }
    let tones: Vec<f32> = talkers.iter().map(|talker| talker.tone).collect();
    let heard = talkers.iter().map(|one| {
        let loudness = tones.iter().map(|tone| one.loudness(*tone));
        (one.heard.len(), loudness.collect::<Vec<_>>())
    });
    panic!(
        "{what} did not come about; who hears whom: {:?}",
        heard.collect::<Vec<_>>()
    );
}
