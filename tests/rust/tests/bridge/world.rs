//! A server with a room, and participants who each talk with a tone of their own.

use std::f32::consts::TAU;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use opusic_c::{Application, Channels, Decoder, Encoder, SampleRate};
use portunus_audio::{AudioConfig, AudioThreads};
use portunus_audiobridge::{AudioBridge, AudioBridgeConfig};
use portunus_core::Plugin;
use portunus_core::record::Recorder;
use portunus_core::testing::everywhere;
use portunus_dsp::g711::{self, Law};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server, header, http};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::time::Instant;

pub const PACKAGE: &str = "janus.plugin.audiobridge";
pub const ROOM: u64 = 1234;
pub const SDP: &str = "Content-Type: application/sdp";
const FRAME: Duration = Duration::from_millis(20);
/// The id of the extension with a packet's level.
const LEVEL: u8 = 1;
/// The least loudness of an audible tone, relative to full scale.
const LOUD: f32 = 0.03;
/// The greatest loudness of an inaudible tone.
const SILENT: f32 = 0.003;

pub async fn server(config: AudioBridgeConfig, recorder: Recorder) -> Server {
    Server::recording_with(2, recorder.clone(), |media| async move {
        let config = AudioBridgeConfig {
            outgoing: everywhere(),
            ..config
        };
        let audio = AudioThreads::new(AudioConfig::default(), media.clone(), recorder.clone());
        let plugin = AudioBridge::new(config, media, recorder, audio);
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await
}

/// Starts a server with a room that has these options, too.
pub async fn with_room(options: Value) -> Server {
    let server = server(AudioBridgeConfig::default(), Recorder::default()).await;
    create(&server, options).await;
    server
}

pub async fn create(server: &Server, options: Value) {
    let mut create = json!({ "request": "create", "room": ROOM });
    merge(&mut create, options);
    let created = manage(server, create).await;
    assert_eq!(created["audiobridge"], "created", "{created}");
}

/// Sends a request that is answered immediately.
pub async fn manage(server: &Server, request: Value) -> Value {
    server.attach(PACKAGE).await.manage(request).await
}

pub fn merge(object: &mut Value, members: Value) {
    let members = members.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(members);
}

/// The codec of a participant.
enum Codec {
    Opus(Box<Encoder>, Box<Decoder>),
    G711(Law),
}

/// A participant with a PeerConnection, who talks with a tone unless it is silent.
pub struct Member {
    pub caller: Caller,
    pub peer: Peer,
    codec: Codec,
    /// The tone in Hz.
    pub tone: f32,
    pub is_silent: bool,
    /// The loudness of additional noise, relative to full scale.
    pub noise: f32,
    /// The received payloads, in order.
    pub payloads: Vec<Vec<u8>>,
    frame: u32,
    /// The sound heard since the last look, at 48 kHz, or 8 kHz with G.711.
    heard: Vec<f32>,
}

/// Returns the samples of a frame of a tone.
pub fn samples(tone: f32, rate: u32, frame: u32) -> Vec<f32> {
    let count = rate / 50;
    let at = |n: u32| (frame * count + n) as f32 / rate as f32;
    let sample = |n| 0.25 * (TAU * tone * at(n)).sin();
    (0..count).map(sample).collect()
}

/// Returns an encoder of one channel at 48 kHz.
pub fn opus_encoder() -> Encoder {
    Encoder::new(Channels::Mono, SampleRate::Hz48000, Application::Voip).unwrap()
}

pub fn opus_packet(encoder: &mut Encoder, samples: &[f32]) -> Vec<u8> {
    let mut packet = vec![0; 1_276];
    let len = encoder.encode_float_to_slice(samples, &mut packet);
    packet.truncate(len.unwrap());
    packet
}

/// Returns a client's offer for joining.
pub fn offer(codec: CodecName, direction: Direction) -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, direction);
    let fmtp = (codec == CodecName::Opus).then(|| "useinbandfec=1".to_owned());
    audio.add_codec(codec, None, fmtp);
    audio.extensions.push((ExtensionKind::AudioLevel, LEVEL));
    Description::offer(OfferOptions {
        media: vec![audio],
        ..Default::default()
    })
}

impl Member {
    /// Joins with Opus, and connects.
    pub async fn join(server: &Server, tone: f32, members: Value) -> Self {
        Self::with(
            server,
            tone,
            members,
            (CodecName::Opus, Direction::SendRecv),
        )
        .await
    }

    pub async fn with(
        server: &Server,
        tone: f32,
        members: Value,
        (codec, direction): (CodecName, Direction),
    ) -> Self {
        let mut request = json!({ "request": "join", "room": ROOM });
        merge(&mut request, members);
        Self::asking(server, tone, request, (codec, direction)).await
    }

    /// Sends this request with an offer, and connects.
    pub async fn asking(
        server: &Server,
        tone: f32,
        request: Value,
        (codec, direction): (CodecName, Direction),
    ) -> Self {
        let mut caller = server.attach(PACKAGE).await;
        let mut peer = Peer::offering().await;
        let text = peer.offer(offer(codec, direction));
        caller.message(request, Some(("offer", &text))).await;
        let event = caller.next().await;
        let answer = event["jsep"]["sdp"].as_str();
        peer.accept(answer.unwrap_or_else(|| panic!("no answer in {event}")));
        peer.connect().await;
        caller.until("/janus", "webrtcup").await;
        Self::new((caller, peer), codec, tone)
    }

    /// Joins by WHIP or WHEP, and connects. Its `caller` is in no room. Returns the session's
    /// location, too.
    pub async fn by_http(
        server: &Server,
        (to, path): (SocketAddr, &str),
        tone: f32,
        direction: Direction,
    ) -> (Self, String) {
        let mut peer = Peer::offering().await;
        let text = peer.offer(offer(CodecName::Opus, direction));
        let post = format!("POST {path}");
        let (status, answer) = http(to, &post, &[SDP], text.as_bytes()).await;
        assert_eq!(status, 201, "{answer}");
        peer.accept(answer.split_once("\r\n\r\n").unwrap().1);
        peer.connect().await;
        let caller = server.attach(PACKAGE).await;
        let location = header(&answer, "location").unwrap().to_owned();
        (Self::new((caller, peer), CodecName::Opus, tone), location)
    }

    fn new((caller, peer): (Caller, Peer), codec: CodecName, tone: f32) -> Self {
        let codec = match codec {
            CodecName::Opus => {
                let decoder = Decoder::new(Channels::Stereo, SampleRate::Hz48000).unwrap();
                Codec::Opus(Box::new(opus_encoder()), Box::new(decoder))
            }
            CodecName::Pcma => Codec::G711(Law::A),
            _ => Codec::G711(Law::Mu),
        };
        Member {
            caller,
            peer,
            codec,
            tone,
            is_silent: false,
            noise: 0.0,
            payloads: Vec::new(),
            frame: 0,
            heard: Vec::new(),
        }
    }

    /// Sends a request, and returns the event that answers it.
    pub async fn ask(&mut self, request: Value) -> Value {
        self.caller.message(request, None).await;
        loop {
            let message = self.caller.next().await;
            if message["janus"] == "event" && !message["transaction"].is_null() {
                return message["plugindata"]["data"].clone();
            }
        }
    }

    /// Returns the plugin's next event with `value` at `member`.
    pub async fn told(&mut self, member: &str, value: impl Into<Value>) -> Value {
        let pointer = format!("/plugindata/data/{member}");
        let event = self.caller.until(&pointer, value).await;
        event["plugindata"]["data"].clone()
    }

    /// Sends the next frame, and lets time pass until `deadline`.
    async fn turn(&mut self, deadline: Instant) {
        if !self.is_silent {
            let (payload, step) = self.encode();
            let timestamp = self.frame.wrapping_mul(step);
            // -20 dBov, with the bit for a voice.
            let level: &[(u8, &[u8])] = &[(LEVEL, &[0x80 | 20])];
            self.peer.send_with(0, timestamp, level, &payload).await;
        }
        self.frame += 1;
        self.peer.run_until(|_| Instant::now() >= deadline).await;
        self.decode();
    }

    fn encode(&mut self) -> (Vec<u8>, u32) {
        let samples = |rate| {
            let mut samples = samples(self.tone, rate, self.frame);
            let mut at = StdRng::seed_from_u64(self.frame.into());
            let noise = samples.iter_mut();
            noise.for_each(|sample| *sample += self.noise * at.random_range(-1.0..1.0));
            samples
        };
        match &mut self.codec {
            Codec::Opus(encoder, _) => {
                let packet = opus_packet(encoder, &samples(48_000));
                (packet, 960)
            }
            Codec::G711(law) => {
                let mut packet = Vec::new();
                g711::encode(*law, &samples(8_000), &mut packet);
                (packet, 160)
            }
        }
    }

    fn decode(&mut self) {
        for packet in std::mem::take(&mut self.peer.packets) {
            match &mut self.codec {
                Codec::Opus(_, decoder) => {
                    let mut sound = [0.0; 2 * 5_760];
                    let count = decoder.decode_float_to_slice(&packet.payload, &mut sound, false);
                    let stereo = sound[..2 * count.unwrap()].as_chunks::<2>().0;
                    self.heard
                        .extend(stereo.iter().map(|[left, right]| (left + right) / 2.0));
                }
                Codec::G711(law) => g711::decode(*law, &packet.payload, &mut self.heard),
            }
            self.payloads.push(packet.payload);
        }
    }

    /// Returns the loudness of `tone` in the last 200 ms, as the amplitude of a sine.
    pub fn loudness(&self, tone: f32) -> f32 {
        loudness(&self.heard, self.rate(), tone)
    }

    /// Returns the rate of received sound, in Hz.
    fn rate(&self) -> usize {
        match self.codec {
            Codec::Opus(..) => 48_000,
            Codec::G711(_) => 8_000,
        }
    }

    /// Returns the root mean square of the last 200 ms.
    pub fn volume(&self) -> f32 {
        let window = self.rate() / 5;
        let last = self.heard.len().saturating_sub(window);
        let squares = self.heard[last..].iter().map(|sample| sample * sample);
        (squares.sum::<f32>() / window as f32).sqrt()
    }

    pub fn hears(&self, tone: f32) -> bool {
        self.loudness(tone) > LOUD
    }

    pub fn is_deaf_to(&self, tone: f32) -> bool {
        self.loudness(tone) < SILENT
    }
}

/// Returns the loudness of `tone` in the last 200 ms of `sound`, as the amplitude of a sine.
pub fn loudness(sound: &[f32], rate: usize, tone: f32) -> f32 {
    let window = rate / 5;
    let Some(start) = sound.len().checked_sub(window) else {
        return 0.0;
    };
    let (mut sine, mut cosine) = (0.0_f32, 0.0_f32);
    for (n, sample) in sound[start..].iter().enumerate() {
        let phase = TAU * tone * n as f32 / rate as f32;
        sine += sample * phase.sin();
        cosine += sample * phase.cos();
    }
    2.0 * sine.hypot(cosine) / window as f32
}

/// Lets all of them talk until `done`, 15 s at most.
pub async fn talk(
    members: &mut [&mut Member],
    what: &str,
    mut done: impl FnMut(&[&mut Member]) -> bool,
) {
    let mut deadline = Instant::now();
    for _ in 0..750 {
        deadline += FRAME;
        let turns = members.iter_mut().map(|member| member.turn(deadline));
        futures_util::future::join_all(turns).await;
        if done(members) {
            return;
        }
    }
    let heard: Vec<Vec<f32>> = members
        .iter()
        .map(|one| {
            members
                .iter()
                .map(|other| one.loudness(other.tone))
                .collect()
        })
        .collect();
    panic!("{what} did not come about; who hears whom: {heard:?}");
}

/// Lets all of them talk for this number of frames.
pub async fn talk_for(members: &mut [&mut Member], frames: usize) {
    let mut left = frames;
    talk(members, "time", |_| {
        left -= 1;
        left == 0
    })
    .await;
}

impl Member {
    /// Returns the number of samples heard so far.
    pub fn heard_samples(&self) -> usize {
        self.heard.len()
    }
}
