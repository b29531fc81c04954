//! SIP calls to hammer's own far end, which sends back what it hears.

mod registrations;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use portunus_dsp::AudioCodec;
use portunus_sdp::CodecName;
use serde_json::json;

use super::ScenarioError;
use super::crowd::{Act, Line, LineEnd, Sound};
use super::load::{self, Flow, given};
use super::run::{self, Acts};
use super::stage::Stage;
use crate::farend::{FarConfig, FarEnd};
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::source::SourceConfig;
use crate::speech::{Encoding, Script, Talker};
use crate::traffic::{AUDIO_PERIOD, Traffic};
use registrations::Accounts;

/// The speech of transcoded calls.
const SPOKEN: Encoding = Encoding {
    codec: AudioCodec::Opus,
    bitrate: 32_000,
    dtx: false,
    expected_loss: 0,
    rate: 16_000,
};

/// Participants who register at a far end and call it.
#[derive(Debug, Clone, Args)]
#[group(id = "sip")]
pub struct Options {
    /// What all scenarios ask; participants are calls
    #[command(flatten)]
    pub load: load::Options,
    /// The codec of both sides, 50 packets a second each way
    #[arg(long, value_enum, default_value_t)]
    pub codec: Codec,
    /// The far end has this codec and participants have Opus: for servers that transcode
    #[arg(long, value_enum, conflicts_with = "codec")]
    pub far_codec: Option<Codec>,
    /// Call this address instead of hammer's own far end, such as a conference of another server:
    /// sip:1000@192.0.2.1:5070. Participants are guests, say something, and count what comes back,
    /// 50 packets a second
    #[arg(long, value_name = "URI", conflicts_with_all = ["far_codec", "registrations", "expires", "nonce"])]
    pub call: Option<String>,
    /// Instead of calls: so many accounts that are registered and refreshed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["ramp", "storm", "churn", "leave"])]
    pub registrations: Option<u32>,
    /// How long the registrar grants a registration, in seconds; servers refresh it somewhat
    /// earlier
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(5..=86_400))]
    pub expires: u64,
    /// For how long the registrar takes the answer to a digest challenge, in seconds; then it asks
    /// anew
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub nonce: u64,
}

/// The codec of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Codec {
    /// RFC 7587, 32 kbit/s
    Opus,
    /// G.711 A-law
    Pcma,
    /// G.711 µ-law
    #[default]
    Pcmu,
    /// G.722
    G722,
}

pub(super) async fn measure(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let stage = Stage::new(&options.load).await?;
    if let Some(uri) = &options.call {
        return conference(options, uri, stage, progress).await;
    }
    let far = FarEnd::start(&FarConfig {
        local: stage.way.local,
        codec: options.far_codec.unwrap_or(options.codec).name(),
        expires: Duration::from_secs(options.expires),
        nonce: Duration::from_secs(options.nonce),
    });
    let far = Arc::new(far.map_err(ScenarioError::Source)?);
    let codec = options.near_codec();
    let sound = match options.far_codec {
        None => Sound::Stamped(options.source()),
        Some(_) => Sound::Spoken(Arc::new(Script::of(Talker::Voice(0), SPOKEN)?)),
    };
    let line = Line::new(LineEnd::Own(Arc::clone(&far)), codec.name(), sound);
    let flow = options.flow(Some(Arc::clone(&far)));
    if let Some(count) = options.registrations {
        let accounts = Accounts {
            count,
            line: Arc::new(line),
            far,
            granted_s: options.expires,
        };
        return registrations::measure(stage, &flow, accounts, progress).await;
    }
    let crowd = stage.crowd(true, None)?;
    let acts = Acts::Each(vec![Act::Call(Arc::new(line))]);
    run::run(stage, crowd, &flow, acts, progress).await
}

/// Lets participants call a conference, which hears and answers them.
async fn conference(
    options: &Options,
    uri: &str,
    stage: Stage<'_>,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let spoken = Encoding {
        codec: options.codec.audio(),
        ..SPOKEN
    };
    let end = LineEnd::Other {
        uri: uri.to_owned(),
        host: stage.way.local,
    };
    let sound = Sound::Spoken(Arc::new(Script::of(Talker::Voice(0), spoken)?));
    let line = Line::new(end, options.codec.name(), sound);
    let crowd = stage.crowd(true, None)?;
    let acts = Acts::Each(vec![Act::Call(Arc::new(line))]);
    run::run(stage, crowd, &options.flow(None), acts, progress).await
}

impl Options {
    /// Returns the traffic of each participant.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic::audio(self.near_codec().rtp_bps())
    }

    fn near_codec(&self) -> Codec {
        self.far_codec.map_or(self.codec, |_| Codec::Opus)
    }

    fn source(&self) -> SourceConfig {
        SourceConfig {
            audio_codec: self.codec.audio(),
            ..SourceConfig::of(self.traffic())
        }
    }

    fn flow(&self, far: Option<Arc<FarEnd>>) -> Flow {
        let name = |codec: Codec| {
            let value = codec.to_possible_value()?;
            Some(value.get_name().to_owned())
        };
        Flow {
            name: "sip",
            interval: AUDIO_PERIOD,
            period: AUDIO_PERIOD,
            options: given([
                ("codec", json!(name(self.near_codec()))),
                ("far-codec", json!(self.far_codec.and_then(name))),
                ("call", json!(self.call)),
                ("registrations", json!(self.registrations)),
                ("expires", json!(self.registrations.map(|_| self.expires))),
                ("nonce", json!(self.registrations.map(|_| self.nonce))),
            ]),
            hall: None,
            far,
        }
    }
}

impl Codec {
    fn audio(self) -> AudioCodec {
        match self {
            Codec::Opus => AudioCodec::Opus,
            Codec::Pcma => AudioCodec::Pcma,
            Codec::Pcmu => AudioCodec::Pcmu,
            Codec::G722 => AudioCodec::G722,
        }
    }

    /// Returns the codec's name in SDP.
    fn name(self) -> CodecName {
        match self {
            Codec::Opus => CodecName::Opus,
            Codec::Pcma => CodecName::Pcma,
            Codec::Pcmu => CodecName::Pcmu,
            Codec::G722 => CodecName::G722,
        }
    }

    /// Returns the bit rate, including RTP headers.
    fn rtp_bps(self) -> u64 {
        let bytes = match self {
            Codec::Opus => 80,
            Codec::Pcma | Codec::Pcmu | Codec::G722 => 160,
        };
        (bytes + crate::traffic::RTP_HEADER_BYTES as u64) * 8 * 50
    }
}
