//! The settings of a participant.

use portunus_dsp::{AudioCodec, Encoding, ParticipantOptions};
use serde::Deserialize;

use crate::codec::{QUALITY, encoding, named_codec};
use crate::options::{MAX_LOSS, RoomOptions, bitrate};
use crate::refusal::Refusal;

/// The members that `join` and `changeroom` share.
#[derive(Debug, Deserialize)]
pub(crate) struct Joining<'a> {
    #[serde(rename = "pin")]
    _pin: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
    #[serde(rename = "secret")]
    _secret: Option<&'a str>,
    group: Option<&'a str>,
    display: Option<&'a str>,
    muted: Option<bool>,
    suspended: Option<bool>,
    pause_events: Option<bool>,
    codec: Option<&'a str>,
    bitrate: Option<u64>,
    quality: Option<u64>,
    expected_loss: Option<u64>,
    volume: Option<u64>,
    spatial_position: Option<u64>,
    audio_level_average: Option<u64>,
    audio_active_packets: Option<u64>,
    denoise: Option<bool>,
    pub(crate) record: Option<bool>,
    pub(crate) filename: Option<&'a str>,
    pub(crate) record_format: Option<&'a str>,
    #[serde(default)]
    pub(crate) generate_offer: bool,
}

/// The members of `configure`.
#[derive(Debug, Deserialize)]
pub(crate) struct Configuring<'a> {
    pub(crate) muted: Option<bool>,
    pub(crate) display: Option<&'a str>,
    bitrate: Option<u64>,
    quality: Option<u64>,
    expected_loss: Option<u64>,
    volume: Option<u64>,
    pub(crate) spatial_position: Option<u64>,
    pub(crate) denoise: Option<bool>,
    group: Option<&'a str>,
    pub(crate) record: Option<bool>,
    pub(crate) filename: Option<&'a str>,
    pub(crate) record_format: Option<&'a str>,
    #[serde(default)]
    pub(crate) generate_offer: bool,
    #[serde(default)]
    pub(crate) update: bool,
}

/// The settings of a participant: how it is heard, and what it hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) display: Option<String>,
    pub(crate) muted: bool,
    pub(crate) suspended: bool,
    /// While suspended, it gets no events about others.
    pub(crate) pause_events: bool,
    pub(crate) codec: AudioCodec,
    /// In bit/s. `None`: libopus chooses.
    pub(crate) bitrate: Option<u32>,
    /// 1 to 10.
    pub(crate) quality: u8,
    /// In percent.
    pub(crate) expected_loss: u8,
    /// In percent, without a limit.
    pub(crate) volume: u64,
    /// 0 (left) to 100 (right).
    pub(crate) position: u8,
    pub(crate) talk: TalkThresholds,
    pub(crate) denoise: bool,
    /// The index of its group.
    pub(crate) group: Option<usize>,
}

/// A participant's own thresholds of talking. `None`: those of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TalkThresholds {
    /// The packets of a window.
    packets: Option<u64>,
    /// In -dBov.
    level: Option<u64>,
}

impl Settings {
    /// Returns the settings of a new participant.
    pub(crate) fn joining(wish: &Joining<'_>, room: &RoomOptions) -> Result<Self, Refusal> {
        let group = room.wanted_group(wish.group)?;
        let quality = quality(wish.quality)?.unwrap_or(QUALITY);
        let loss = expected_loss(wish.expected_loss)?.unwrap_or(room.expected_loss);
        let codec = named_codec(wish.codec)?;
        let above_0 = |number: Option<u64>| number.filter(|number| *number > 0);
        let talk = TalkThresholds {
            packets: above_0(wish.audio_active_packets),
            level: above_0(wish.audio_level_average),
        };
        Ok(Settings {
            group,
            codec,
            quality,
            expected_loss: loss,
            talk,
            ..Self::wished(wish, room)
        })
    }

    /// Returns the settings of a caller.
    pub(crate) fn of_caller(
        display: Option<String>,
        codec: AudioCodec,
        room: &RoomOptions,
    ) -> Self {
        Settings {
            display,
            muted: false,
            suspended: false,
            pause_events: false,
            codec,
            bitrate: room.bitrate,
            quality: QUALITY,
            expected_loss: room.expected_loss,
            volume: 100,
            position: 50,
            talk: TalkThresholds::default(),
            denoise: room.denoise,
            group: None,
        }
    }

    /// Returns the settings in another room.
    pub(crate) fn changing(&self, wish: &Joining<'_>, room: &RoomOptions) -> Result<Self, Refusal> {
        let group = room.wanted_group(wish.group)?;
        let quality = quality(wish.quality)?.unwrap_or(self.quality);
        let loss = expected_loss(wish.expected_loss)?.unwrap_or(self.expected_loss);
        Ok(Settings {
            group,
            codec: self.codec,
            quality,
            expected_loss: loss,
            talk: self.talk,
            ..Self::wished(wish, room)
        })
    }

    /// Returns the settings that need no checks. The others have their defaults.
    fn wished(wish: &Joining<'_>, room: &RoomOptions) -> Self {
        let suspended = wish.suspended.unwrap_or(false);
        Settings {
            display: wish.display.map(str::to_owned),
            muted: wish.muted.unwrap_or(false),
            suspended,
            pause_events: suspended && wish.pause_events.unwrap_or(false),
            codec: AudioCodec::Opus,
            bitrate: bitrate(wish.bitrate).or(room.bitrate),
            quality: QUALITY,
            expected_loss: room.expected_loss,
            volume: wish.volume.unwrap_or(100),
            position: wish.spatial_position.map_or(50, position),
            talk: TalkThresholds::default(),
            denoise: wish.denoise.unwrap_or(room.denoise),
            group: None,
        }
    }

    /// Returns the settings after a `configure`, or an error if one of its members is invalid.
    pub(crate) fn configured(
        &self,
        wish: &Configuring<'_>,
        room: &RoomOptions,
    ) -> Result<Self, Refusal> {
        let mut settings = self.clone();
        settings.muted = wish.muted.unwrap_or(settings.muted);
        if let Some(display) = wish.display {
            settings.display = Some(display.to_owned());
        }
        if wish.bitrate.is_some() {
            settings.bitrate = bitrate(wish.bitrate);
        }
        settings.quality = quality(wish.quality)?.unwrap_or(settings.quality);
        settings.expected_loss =
            expected_loss(wish.expected_loss)?.unwrap_or(settings.expected_loss);
        settings.volume = wish.volume.unwrap_or(settings.volume);
        if room.spatial {
            settings.position = wish.spatial_position.map_or(settings.position, position);
        }
        settings.denoise = wish.denoise.unwrap_or(settings.denoise);
        if let Some(group) = wish.group
            && !room.groups.is_empty()
        {
            settings.group = Some(room.group(group)?);
        }
        Ok(settings)
    }

    /// Whether it gets only events about itself.
    pub(crate) const fn is_paused(&self) -> bool {
        self.suspended && self.pause_events
    }

    /// Returns the options for the mixer. `levels`: its packets carry audio levels. `fec`: it
    /// accepts in-band FEC.
    pub(crate) fn mixed(
        &self,
        room: &RoomOptions,
        immune: bool,
        levels: bool,
        fec: bool,
    ) -> ParticipantOptions {
        let TalkThresholds { packets, level } = self.talk;
        ParticipantOptions {
            codec: self.codec,
            muted: self.muted,
            suspended: self.suspended,
            immune,
            gain: self.volume as f32 / 100.0,
            position: f32::from(self.position) / 100.0,
            group: self.group,
            denoise: self.denoise,
            levels,
            talk: room.talk(packets, level).filter(|_| levels),
            encoding: encoding(self.codec, || Encoding {
                codec: self.codec,
                bitrate: self.bitrate,
                complexity: self.quality,
                fec,
                expected_loss: self.expected_loss,
            }),
        }
    }
}

fn quality(quality: Option<u64>) -> Result<Option<u8>, Refusal> {
    match quality.map(u8::try_from).transpose() {
        Ok(quality) if quality.is_none_or(|quality| (1..=10).contains(&quality)) => Ok(quality),
        Ok(_) | Err(_) => Err(Refusal::value("quality", "1 to 10")),
    }
}

fn expected_loss(loss: Option<u64>) -> Result<Option<u8>, Refusal> {
    match loss {
        Some(loss) if loss > MAX_LOSS => Err(Refusal::value("expected_loss", "0 to 20")),
        loss => Ok(loss.and_then(|loss| u8::try_from(loss).ok())),
    }
}

fn position(position: u64) -> u8 {
    u8::try_from(position.min(100)).unwrap_or(100)
}
