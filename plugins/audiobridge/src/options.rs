//! What a room can be told, when it is made and later.

use portunus_core::{Fields, Handle, Object, TokenScope};
use portunus_dsp::{Channels, Format, SampleRate, TalkOptions};
use portunus_resources::{Access, Id};
use serde_json::{Map, Value};

use crate::members::{Members, Type, texts};
use crate::refusal::Refusal;

/// The most groups of a room: each has a mix of its own.
const MAX_GROUPS: usize = 5;
/// The most loss that encoders can be told to expect, in percent.
pub(crate) const MAX_LOSS: u64 = 20;
/// What libopus takes as a bitrate, in bit/s.
const BITRATES: std::ops::RangeInclusive<u64> = 500..=512_000;
/// The quietest level, in -dBov.
const SILENCE: u64 = 127;

/// The types of the members of `create`, and of rooms in the configuration.
pub(crate) const MEMBERS: Members = &[
    ("permanent", Type::Flag),
    ("description", Type::Text),
    ("secret", Type::Text),
    ("pin", Type::Text),
    ("is_private", Type::Flag),
    ("allowed", Type::Texts),
    ("sampling_rate", Type::Number),
    ("sampling", Type::Number),
    ("spatial_audio", Type::Flag),
    ("audiolevel_ext", Type::Flag),
    ("audiolevel_event", Type::Flag),
    ("audio_active_packets", Type::Number),
    ("audio_level_average", Type::Number),
    ("default_expectedloss", Type::Number),
    ("default_bitrate", Type::Number),
    ("denoise", Type::Flag),
    ("record", Type::Flag),
    ("record_file", Type::Text),
    ("record_dir", Type::Text),
    ("record_format", Type::Text),
    ("mjrs", Type::Flag),
    ("mjrs_dir", Type::Text),
    ("allow_rtp_participants", Type::Flag),
    ("groups", Type::Texts),
    ("signed_tokens", Type::Flag),
    ("loudest", Type::Number),
];

/// The types of the members of `edit`.
pub(crate) const EDITED: Members = &[
    ("secret", Type::Text),
    ("new_description", Type::Text),
    ("new_secret", Type::Text),
    ("new_pin", Type::Text),
    ("new_is_private", Type::Flag),
    ("new_record_dir", Type::Text),
    ("new_mjrs_dir", Type::Text),
    ("permanent", Type::Flag),
];

/// What the recording of a mix is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RecordFormat {
    /// PCM with 16 bits.
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

    fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        match fields.text("record_format")? {
            None | Some("wav") => Ok(RecordFormat::Wav),
            Some("opus") => Ok(RecordFormat::Opus),
            Some(_) => Err(Refusal::value("record_format", "wav or opus")),
        }
    }
}

/// The options of a room, as `create` and the configuration have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoomOptions {
    pub(crate) description: String,
    /// Who may manage it, and who may join.
    pub(crate) access: Access,
    pub(crate) signed_tokens: bool,
    pub(crate) rate: SampleRate,
    pub(crate) spatial: bool,
    pub(crate) audiolevel_ext: bool,
    pub(crate) audiolevel_event: bool,
    /// packets
    pub(crate) audio_active_packets: u64,
    /// -dBov: 0 is loud, 127 silent
    pub(crate) audio_level_average: u64,
    /// percent
    pub(crate) expected_loss: u8,
    /// bit/s; none: as libopus chooses
    pub(crate) bitrate: Option<u32>,
    pub(crate) denoise: bool,
    /// The mix is recorded.
    pub(crate) record: bool,
    pub(crate) record_file: Option<String>,
    pub(crate) record_dir: Option<String>,
    pub(crate) record_format: RecordFormat,
    /// Whoever joins is recorded.
    pub(crate) mjrs: bool,
    pub(crate) mjrs_dir: Option<String>,
    pub(crate) allow_rtp: bool,
    pub(crate) groups: Vec<String>,
    /// How many are heard at once; 0: all.
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

impl RoomOptions {
    /// Reads the options of a new room, whose members have the right types; what is not there has its default. The sampling rate is
    /// read by [`sampling_rate`].
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let defaults = RoomOptions::default();
        let flag = |name: &str, default: bool| -> Result<bool, Refusal> {
            Ok(fields.boolean(name)?.unwrap_or(default))
        };
        let above_0 = |name: &str, default: u64| -> Result<u64, Refusal> {
            let number = fields.positive(name)?;
            Ok(number.filter(|number| *number > 0).unwrap_or(default))
        };
        let audiolevel_event = flag("audiolevel_event", defaults.audiolevel_event)?;
        // Only then they mean something.
        let levels = |name: &str, default: u64| match audiolevel_event {
            true => above_0(name, default),
            false => Ok(default),
        };
        let packets = levels("audio_active_packets", defaults.audio_active_packets)?;
        let average = levels("audio_level_average", defaults.audio_level_average)?;
        Ok(RoomOptions {
            description: text(fields, "description")?.unwrap_or_default(),
            access: Access::read(fields)?,
            signed_tokens: flag("signed_tokens", defaults.signed_tokens)?,
            rate: defaults.rate,
            spatial: flag("spatial_audio", defaults.spatial)?,
            audiolevel_ext: flag("audiolevel_ext", defaults.audiolevel_ext)?,
            audiolevel_event,
            audio_active_packets: packets,
            audio_level_average: average.min(SILENCE),
            expected_loss: fields
                .positive("default_expectedloss")?
                .filter(|loss| *loss <= MAX_LOSS)
                .and_then(|loss| u8::try_from(loss).ok())
                .unwrap_or(defaults.expected_loss),
            bitrate: bitrate(fields, "default_bitrate")?,
            denoise: flag("denoise", defaults.denoise)?,
            record: flag("record", defaults.record)?,
            record_file: text(fields, "record_file")?,
            record_dir: text(fields, "record_dir")?,
            record_format: RecordFormat::read(fields)?,
            mjrs: flag("mjrs", defaults.mjrs)?,
            mjrs_dir: text(fields, "mjrs_dir")?,
            allow_rtp: flag("allow_rtp_participants", defaults.allow_rtp)?,
            groups: groups(fields)?,
            loudest: fields.positive("loudest")?.unwrap_or(defaults.loudest),
        })
    }

    /// The options after the request `edit`, whose members have the right types.
    pub(crate) fn edited(&self, fields: Fields<'_>) -> Result<Self, Refusal> {
        let mut options = self.clone();
        if let Some(description) = text(fields, "new_description")? {
            options.description = description;
        }
        options.access = options.access.edited(fields)?;
        // The secret cannot be taken off, the pin can.
        if fields.string("new_pin")? == Some("") {
            options.access.pin = None;
        }
        options.record_dir = text(fields, "new_record_dir")?.or(options.record_dir);
        options.mjrs_dir = text(fields, "new_mjrs_dir")?.or(options.mjrs_dir);
        Ok(options)
    }

    /// Checks that a request shows a token that is signed for `room`, where these are asked for: as `token` in its body, or as a
    /// JSON Web Token that the API takes.
    pub(crate) fn check_signed_token(
        &self,
        room: &Id,
        (client, scope): (&Handle, &TokenScope),
        token: Option<&str>,
    ) -> Result<(), Refusal> {
        if !self.signed_tokens || scope.opens(&room.to_string()) {
            return Ok(());
        }
        match client.signed_token_opens(token, &format!("room={room}")) {
            Some(false) => Err(Refusal::NotSigned),
            Some(true) | None => Ok(()),
        }
    }

    /// The form of the mix.
    pub(crate) const fn format(&self) -> Format {
        Format {
            rate: self.rate,
            channels: match self.spatial {
                true => Channels::Stereo,
                false => Channels::Mono,
            },
        }
    }

    /// The place of a group among the room's.
    pub(crate) fn group(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.groups.iter().position(|group| group == name);
        found.ok_or_else(|| Refusal::NoSuchGroup(name.to_owned()))
    }

    /// When somebody counts as talking, with thresholds of its own or the room's; none: nobody wants to know.
    pub(crate) fn talk(&self, packets: Option<u64>, level: Option<u64>) -> Option<TalkOptions> {
        let packets = packets.unwrap_or(self.audio_active_packets);
        let level = level.unwrap_or(self.audio_level_average).min(SILENCE);
        self.audiolevel_event.then(|| TalkOptions {
            packets: u32::try_from(packets).unwrap_or(u32::MAX),
            level: u8::try_from(level).unwrap_or(u8::MAX),
        })
    }

    /// The members of a `list` entry that are options.
    pub(crate) fn listed(&self) -> Object {
        Object::new()
            .with("description", self.description.as_str())
            .with("sampling_rate", self.rate.hertz())
            .with("spatial_audio", self.spatial)
            .with("pin_required", self.access.pin.is_some())
            .with("record", self.record)
    }

    /// The members that [`RoomOptions::read`] makes the same of; only what is not the default, but the rate always.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let text = |text: &Option<String>| Value::from(text.clone().unwrap_or_default());
        let members = |options: &RoomOptions| {
            [
                ("description", Value::from(options.description.as_str())),
                ("is_private", options.access.is_private.into()),
                ("secret", text(&options.access.secret)),
                ("pin", text(&options.access.pin)),
                ("signed_tokens", options.signed_tokens.into()),
                ("spatial_audio", options.spatial.into()),
                ("audiolevel_ext", options.audiolevel_ext.into()),
                ("audiolevel_event", options.audiolevel_event.into()),
                ("audio_active_packets", options.audio_active_packets.into()),
                ("audio_level_average", options.audio_level_average.into()),
                ("default_expectedloss", options.expected_loss.into()),
                ("default_bitrate", options.bitrate.unwrap_or(0).into()),
                ("denoise", options.denoise.into()),
                ("record", options.record.into()),
                ("record_file", text(&options.record_file)),
                ("record_dir", text(&options.record_dir)),
                ("record_format", options.record_format.as_str().into()),
                ("mjrs", options.mjrs.into()),
                ("mjrs_dir", text(&options.mjrs_dir)),
                ("allow_rtp_participants", options.allow_rtp.into()),
                ("groups", options.groups.clone().into()),
                ("loudest", options.loudest.into()),
            ]
        };
        let defaults = members(&RoomOptions::default());
        let own = members(self).into_iter().zip(defaults);
        let own = own
            .filter(|((_, value), (_, default))| value != default)
            .map(|((name, value), _)| (name.to_owned(), value));
        let rate = ("sampling_rate".to_owned(), self.rate.hertz().into());
        std::iter::once(rate).chain(own).collect()
    }
}

/// Reads the sampling rate of a new room; none if it says none.
pub(crate) fn sampling_rate(fields: Fields<'_>) -> Result<Option<SampleRate>, Refusal> {
    let hertz = match fields.positive("sampling_rate")? {
        Some(hertz) => Some(hertz),
        None => fields.positive("sampling")?,
    };
    let rate = |hertz: u64| {
        let known = u32::try_from(hertz).ok().and_then(SampleRate::from_hertz);
        known.ok_or(Refusal::SamplingRate(hertz))
    };
    hertz.map(rate).transpose()
}

/// A bitrate in bit/s; none if it is left to libopus, as one is that it does not take.
pub(crate) fn bitrate(fields: Fields<'_>, name: &str) -> Result<Option<u32>, Refusal> {
    let bitrate = fields
        .positive(name)?
        .filter(|rate| BITRATES.contains(rate));
    Ok(bitrate.and_then(|bitrate| u32::try_from(bitrate).ok()))
}

/// The groups of a room, each once.
fn groups(fields: Fields<'_>) -> Result<Vec<String>, Refusal> {
    let mut groups: Vec<String> = Vec::new();
    let names = texts(fields, "groups")?.unwrap_or_default();
    if names.len() > MAX_GROUPS {
        return Err(Refusal::value("groups", "5 at most"));
    }
    for name in names {
        if !groups.iter().any(|group| group == name) {
            groups.push(name.to_owned());
        }
    }
    Ok(groups)
}

/// A text; an empty one is none.
fn text(fields: Fields<'_>, name: &str) -> Result<Option<String>, Refusal> {
    Ok(fields.text(name)?.map(str::to_owned))
}
