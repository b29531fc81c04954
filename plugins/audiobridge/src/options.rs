//! The options of a room.

use portunus_core::{Fields, Object};
use portunus_dsp::{Channels, Format, SampleRate, TalkOptions};
use portunus_resources::{Access, Id, Options, place};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The limit of groups in a room: each has a mix of its own.
const MAX_GROUPS: usize = 5;
/// The limit of the loss that encoders expect, in percent.
pub(crate) const MAX_LOSS: u64 = 20;
/// The bitrates that libopus accepts, in bit/s.
const BITRATES: std::ops::RangeInclusive<u64> = 500..=512_000;
/// The quietest level, in -dBov.
const SILENCE: u64 = 127;

/// The format of a recording of the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RecordFormat {
    /// 16-bit PCM.
    #[default]
    Wav,
    /// Opus in Ogg.
    Opus,
}

impl RecordFormat {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            RecordFormat::Wav => "wav",
            RecordFormat::Opus => "opus",
        }
    }

    fn read(fields: Fields<'_>, name: &str) -> Result<Option<Self>, Refusal> {
        match fields.text(name)? {
            None => Ok(None),
            Some("wav") => Ok(Some(RecordFormat::Wav)),
            Some("opus") => Ok(Some(RecordFormat::Opus)),
            Some(_) => Err(Refusal::value(name, "wav or opus")),
        }
    }
}

/// The options of a room, as in `create` and in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoomOptions {
    pub(crate) description: String,
    /// Pin and secret.
    pub(crate) access: Access,
    pub(crate) signed_tokens: bool,
    pub(crate) rate: SampleRate,
    pub(crate) spatial: bool,
    pub(crate) audiolevel_ext: bool,
    pub(crate) audiolevel_event: bool,
    /// In packets.
    pub(crate) audio_active_packets: u64,
    /// In -dBov, 0 (loud) to 127 (silent).
    pub(crate) audio_level_average: u64,
    /// In percent.
    pub(crate) expected_loss: u8,
    /// In bit/s. `None`: libopus chooses.
    pub(crate) bitrate: Option<u32>,
    pub(crate) denoise: bool,
    /// Whether the mix is recorded.
    pub(crate) record: bool,
    pub(crate) record_file: Option<String>,
    pub(crate) record_dir: Option<String>,
    pub(crate) record_format: RecordFormat,
    /// Whether all participants are recorded.
    pub(crate) mjrs: bool,
    pub(crate) mjrs_dir: Option<String>,
    pub(crate) allow_rtp: bool,
    pub(crate) groups: Vec<String>,
    /// The number of participants that are heard at once. 0: all of them.
    pub(crate) loudest: u64,
}

impl Default for RoomOptions {
    fn default() -> Self {
        RoomOptions {
            description: String::new(),
            access: Access::default(),
            signed_tokens: false,
            rate: SampleRate::Hz16000,
            spatial: false,
            audiolevel_ext: true,
            audiolevel_event: false,
            audio_active_packets: 100,
            audio_level_average: 25,
            expected_loss: 0,
            bitrate: None,
            denoise: false,
            record: false,
            record_file: None,
            record_dir: None,
            record_format: RecordFormat::Wav,
            mjrs: false,
            mjrs_dir: None,
            allow_rtp: false,
            groups: Vec::new(),
            loudest: 8,
        }
    }
}

type Opt = portunus_resources::Opt<RoomOptions, Refusal>;

/// The options, and the other members of `create`. Wrong types are reported before wrong values.
pub(crate) const OPTIONS: Options<RoomOptions, Refusal> = Options(&[
    Opt::checked::<bool>("permanent").not_configured(),
    Opt::new("description", place!(description))
        .edited_as("new_description")
        .listed(),
    Opt::new("secret", place!(access.secret)).edited_as("new_secret"),
    Opt::new("pin", place!(access.pin, pin, |pin| pin.as_deref().into())).edited_as("new_pin"),
    Opt::new("is_private", place!(access.is_private)).edited_as("new_is_private"),
    Opt::checked::<Vec<IgnoredAny>>("allowed").not_configured(),
    // `sampling_rate` reads them.
    Opt::checked::<u64>("sampling_rate"),
    Opt::checked::<u64>("sampling").not_configured(),
    Opt::new("spatial_audio", place!(spatial)).listed(),
    Opt::new("audiolevel_ext", place!(audiolevel_ext)),
    Opt::new("audiolevel_event", place!(audiolevel_event)),
    Opt::new(
        "audio_active_packets",
        place!(audio_active_packets, above_0, number),
    ),
    Opt::new(
        "audio_level_average",
        place!(audio_level_average, level, number),
    ),
    Opt::new(
        "default_expectedloss",
        place!(expected_loss, loss, |loss| (*loss).into()),
    ),
    Opt::new(
        "default_bitrate",
        place!(bitrate, default_bitrate, |rate| (*rate).into()),
    ),
    Opt::new("denoise", place!(denoise)),
    Opt::new("record", place!(record)).listed(),
    Opt::new("record_file", place!(record_file)),
    Opt::new("record_dir", place!(record_dir)).edited_as("new_record_dir"),
    Opt::new(
        "record_format",
        place!(record_format, RecordFormat::read, |format| format
            .as_str()
            .into()),
    ),
    Opt::new("mjrs", place!(mjrs)),
    Opt::new("mjrs_dir", place!(mjrs_dir)).edited_as("new_mjrs_dir"),
    Opt::new("allow_rtp_participants", place!(allow_rtp)),
    Opt::new(
        "groups",
        place!(groups, groups, |groups| groups.as_slice().into()),
    ),
    Opt::new("signed_tokens", place!(signed_tokens)),
    Opt::new("loudest", place!(loudest)),
]);

/// Whether a refusal is about a member's type.
pub(crate) fn is_type(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Field(_))
}

impl RoomOptions {
    /// Reads the options of a new room, with defaults for missing ones. [`sampling_rate`] reads the
    /// sampling rate.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let mut options = OPTIONS.read(fields)?;
        if !options.audiolevel_event {
            // Without events these have no effect.
            let RoomOptions {
                audio_active_packets,
                audio_level_average,
                ..
            } = RoomOptions::default();
            options.audio_active_packets = audio_active_packets;
            options.audio_level_average = audio_level_average;
        }
        Ok(options)
    }

    /// Fills in a description if there is none.
    pub(crate) fn described(mut self, room: &Id) -> Self {
        if self.description.is_empty() {
            self.description = format!("Room {room}");
        }
        self
    }

    /// The sampling rate and the channels of the mix.
    pub(crate) const fn format(&self) -> Format {
        Format {
            rate: self.rate,
            channels: match self.spatial {
                true => Channels::Stereo,
                false => Channels::Mono,
            },
        }
    }

    /// Returns the index of a group.
    pub(crate) fn group(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.groups.iter().position(|group| group == name);
        found.ok_or_else(|| Refusal::NoSuchGroup(name.to_owned()))
    }

    /// Returns the index of the group that a request names. It must name one if the room has
    /// groups.
    pub(crate) fn wanted_group(&self, name: Option<&str>) -> Result<Option<usize>, Refusal> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        let name = name.ok_or_else(|| Refusal::missing("group"))?;
        self.group(name).map(Some)
    }

    /// Returns when a participant counts as talking, by its own thresholds or the room's. `None` if
    /// the room publishes no such events.
    pub(crate) fn talk(&self, packets: Option<u64>, level: Option<u64>) -> Option<TalkOptions> {
        let packets = packets.unwrap_or(self.audio_active_packets);
        let level = level.unwrap_or(self.audio_level_average).min(SILENCE);
        self.audiolevel_event.then(|| TalkOptions {
            packets: u32::try_from(packets).unwrap_or(u32::MAX),
            level: u8::try_from(level).unwrap_or(u8::MAX),
        })
    }

    /// Returns the options that belong into an entry of `list`.
    pub(crate) fn listed(&self) -> Object {
        OPTIONS
            .listed(self)
            .with("sampling_rate", self.rate.hertz())
            .with("pin_required", self.access.pin.is_some())
    }

    /// Returns the members from which [`RoomOptions::read`] reads the same options: the sampling
    /// rate, and all that differ from their default.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let rate = ("sampling_rate".to_owned(), self.rate.hertz().into());
        std::iter::once(rate)
            .chain(OPTIONS.to_members(self))
            .collect()
    }
}

/// Reads the sampling rate of a new room. Returns `None` if the request has none.
pub(crate) fn sampling_rate(fields: Fields<'_>) -> Result<Option<SampleRate>, Refusal> {
    let hertz = match fields.member("sampling_rate")? {
        Some(hertz) => Some(hertz),
        None => fields.member("sampling")?,
    };
    let rate = |hertz: u64| {
        let known = u32::try_from(hertz).ok().and_then(SampleRate::from_hertz);
        known.ok_or(Refusal::SamplingRate(hertz))
    };
    hertz.map(rate).transpose()
}

/// Returns a bitrate in bit/s, or `None` if libopus is to choose. Values that libopus does not
/// accept count as `None`.
pub(crate) fn bitrate(bitrate: Option<u64>) -> Option<u32> {
    let bitrate = bitrate.filter(|rate| BITRATES.contains(rate))?;
    u32::try_from(bitrate).ok()
}

type Read<T> = Result<Option<T>, Refusal>;

fn default_bitrate(fields: Fields<'_>, name: &str) -> Read<Option<u32>> {
    Ok(Some(bitrate(fields.member(name)?)))
}

/// An empty text removes the pin. The secret cannot be removed.
fn pin(fields: Fields<'_>, name: &str) -> Read<Option<String>> {
    let pin = fields.member::<String>(name)?;
    Ok(pin.map(|pin| Some(pin).filter(|pin| !pin.is_empty())))
}

/// Reads a number. 0 means the default.
fn above_0(fields: Fields<'_>, name: &str) -> Read<u64> {
    Ok(fields.member(name)?.filter(|number| *number > 0))
}

fn level(fields: Fields<'_>, name: &str) -> Read<u64> {
    Ok(above_0(fields, name)?.map(|level| level.min(SILENCE)))
}

fn number(number: &u64) -> Value {
    (*number).into()
}

/// Reads a loss in percent. A value above the limit means the default.
fn loss(fields: Fields<'_>, name: &str) -> Read<u8> {
    let loss = fields.member::<u64>(name)?.filter(|loss| *loss <= MAX_LOSS);
    Ok(loss.and_then(|loss| u8::try_from(loss).ok()))
}

/// Reads the groups of a room, without duplicates.
fn groups(fields: Fields<'_>, name: &'static str) -> Read<Vec<String>> {
    let mut groups: Vec<String> = Vec::new();
    let names = texts(fields, name)?.unwrap_or_default();
    if names.len() > MAX_GROUPS {
        return Err(Refusal::value(name, "5 at most"));
    }
    for name in names {
        if !groups.iter().any(|group| group == name) {
            groups.push(name.to_owned());
        }
    }
    Ok(Some(groups))
}

/// Reads an array of strings.
pub(crate) fn texts<'a>(
    fields: Fields<'a>,
    name: &'static str,
) -> Result<Option<Vec<&'a str>>, Refusal> {
    fields.member::<Vec<IgnoredAny>>(name)?;
    let list = fields.0.get(name).and_then(Value::as_array);
    let Some(list) = list else { return Ok(None) };
    let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    texts.map(Some).ok_or(Refusal::NotAString(name))
}
