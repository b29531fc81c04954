//! The options of audio rooms.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use portunus_dsp::AudioCodec;
use serde_json::{Map, Value, json};

use crate::scenario::crowd::{Hall, Layout, Silence};
use crate::scenario::load::{self, Flow, given};
use crate::speech::Encoding;
use crate::traffic::{AUDIO_PERIOD, Topology, Traffic};

/// Participants of audio rooms, who come to one after the other.
#[derive(Debug, Clone, Args)]
#[group(id = "bridge")]
pub struct Options {
    /// What all scenarios ask
    #[command(flatten)]
    pub load: load::Options,
    /// Participants of each room; there are as many rooms as that takes [default: one room for all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub room_size: Option<u32>,
    /// Participants of each room who talk, in phrases with pauses between
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub talkers: u32,
    /// What the others send
    #[arg(long, value_enum, default_value_t)]
    pub silence: Silence,
    /// Samples a second that rooms mix
    #[arg(long, value_name = "HZ", default_value_t = 16_000, value_parser = sampling_rate)]
    pub sampling_rate: u32,
    /// Rooms are stereo (spatial_audio)
    #[arg(long)]
    pub stereo: bool,
    /// The codec of all
    #[arg(long, value_enum, default_value_t)]
    pub codec: Codec,
    /// What those who talk send as Opus, bits per second
    #[arg(long = "bitrate", value_name = "BPS", default_value = "32k", value_parser = crate::traffic::bits)]
    pub bitrate: u64,
    /// How many are mixed at once, the loudest; 0: all. For servers whose rooms have such an option
    /// [default: the server's]
    #[arg(long, value_name = "N")]
    pub loudest: Option<u32>,
    /// A further member of the request that makes a room; VALUE is JSON
    #[arg(long, value_name = "KEY=VALUE", value_parser = load::member)]
    pub room_option: Vec<(String, Value)>,
    /// The audio bridge plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
    /// At the end, when all have left: recorded sentences are said in so many rooms of two, over a
    /// way that loses and holds up packets, and what the other one hears is scored by PESQ
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub quality: Option<u32>,
    /// The packets that this way loses, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub loss: f64,
    /// It holds each of the others up for a time from 0 to twice this, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30.0, value_parser = milliseconds)]
    pub jitter: f64,
}

/// The codec of the sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Codec {
    /// RFC 7587
    #[default]
    Opus,
    /// G.711 A-law
    Pcma,
    /// G.711 µ-law
    Pcmu,
}

impl Options {
    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Streaming {
            sources: self.rooms(),
        }
    }

    /// Returns the traffic of each participant, as far as it is known.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic::audio(self.bitrate)
    }

    pub(super) fn rooms(&self) -> u32 {
        self.load.viewers.div_ceil(self.room_size())
    }

    fn room_size(&self) -> u32 {
        self.room_size.unwrap_or(self.load.viewers).max(1)
    }

    pub(super) fn layout(&self) -> Layout {
        Layout {
            size: self.room_size() as usize,
            talkers: self.talkers as usize,
            silence: self.silence,
            codec: self.codec.audio(),
            listening: self.load.check_share,
            weather: None,
        }
    }

    pub(in crate::scenario) fn encoding(&self) -> Encoding {
        Encoding {
            codec: self.codec.audio(),
            bitrate: u32::try_from(self.bitrate).unwrap_or(u32::MAX),
            dtx: self.silence == Silence::Dtx,
            expected_loss: 0,
            rate: self.sampling_rate,
        }
    }

    /// Returns members of the request that creates a room.
    pub(super) fn room(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("sampling_rate".to_owned(), self.sampling_rate.into());
        if self.stereo {
            members.insert("spatial_audio".to_owned(), true.into());
        }
        if let Some(loudest) = self.loudest {
            members.insert("loudest".to_owned(), loudest.into());
        }
        members.extend(self.room_option.iter().cloned());
        members
    }

    pub(super) fn flow(&self, hall: &Arc<Hall>) -> Flow {
        let further: Map<String, Value> = self.room_option.iter().cloned().collect();
        Flow {
            name: "bridge",
            interval: AUDIO_PERIOD,
            period: AUDIO_PERIOD,
            options: given([
                ("room-size", json!(self.room_size)),
                ("talkers", json!(self.talkers)),
                ("silence", json!(name(self.silence))),
                ("sampling-rate", json!(self.sampling_rate)),
                ("stereo", json!(self.stereo)),
                ("codec", json!(name(self.codec))),
                ("bitrate", json!(self.bitrate)),
                ("loudest", json!(self.loudest)),
                ("room-option", json!(further)),
                ("quality", json!(self.quality)),
                ("loss", json!(self.quality.map(|_| self.loss))),
                ("jitter", json!(self.quality.map(|_| self.jitter))),
            ]),
            hall: Some(Arc::clone(hall)),
            far: None,
        }
    }
}

impl Codec {
    pub(in crate::scenario) fn audio(self) -> AudioCodec {
        match self {
            Codec::Opus => AudioCodec::Opus,
            Codec::Pcma => AudioCodec::Pcma,
            Codec::Pcmu => AudioCodec::Pcmu,
        }
    }
}

/// Returns the value's name on the command line.
fn name(value: impl ValueEnum) -> Option<String> {
    let value = value.to_possible_value()?;
    Some(value.get_name().to_owned())
}

fn sampling_rate(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(rate) if [8_000, 12_000, 16_000, 24_000, 48_000].contains(&rate) => Ok(rate),
        _ => Err("8000, 12000, 16000, 24000 or 48000 is expected".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    load::number(text, 0.0..=100.0, "a number from 0 to 100 is expected")
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let expected = "milliseconds from 0 to 1000 are expected";
    load::number(text, 0.0..=1_000.0, expected)
}
