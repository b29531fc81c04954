//! How a participant is heard and what it hears, as it asks for it.

use portunus_core::Fields;
use portunus_dsp::{AudioCodec, Encoding, ParticipantOptions};

use crate::codec::{QUALITY, encoding, read_codec};
use crate::members::{Members, Type};
use crate::options::{MAX_LOSS, RoomOptions, bitrate};
use crate::refusal::Refusal;

/// The types of the members that `join` and `changeroom` have in common.
pub(crate) const JOINING: Members = &[
    ("pin", Type::Text),
    ("token", Type::Text),
    ("secret", Type::Text),
    ("group", Type::Text),
    ("display", Type::Text),
    ("muted", Type::Flag),
    ("suspended", Type::Flag),
    ("pause_events", Type::Flag),
    ("codec", Type::Text),
    ("bitrate", Type::Number),
    ("quality", Type::Number),
    ("expected_loss", Type::Number),
    ("volume", Type::Number),
    ("spatial_position", Type::Number),
    ("audio_level_average", Type::Number),
    ("audio_active_packets", Type::Number),
    ("denoise", Type::Flag),
    ("record", Type::Flag),
    ("filename", Type::Text),
    ("record_format", Type::Text),
    ("generate_offer", Type::Flag),
];

/// The types of the members of `configure`.
pub(crate) const CONFIGURING: Members = &[
    ("muted", Type::Flag),
    ("display", Type::Text),
    ("bitrate", Type::Number),
    ("quality", Type::Number),
    ("expected_loss", Type::Number),
    ("volume", Type::Number),
    ("spatial_position", Type::Number),
    ("denoise", Type::Flag),
    ("group", Type::Text),
    ("record", Type::Flag),
    ("filename", Type::Text),
    ("record_format", Type::Text),
    ("generate_offer", Type::Flag),
    ("update", Type::Flag),
    ("rtp", Type::Object),
];

/// How a participant is heard and what it hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) display: Option<String>,
    pub(crate) muted: bool,
    pub(crate) suspended: bool,
    /// It is told of nothing that does not concern itself, as long as it is suspended.
    pub(crate) pause_events: bool,
    pub(crate) codec: AudioCodec,
    /// bit/s; none: as libopus chooses
    pub(crate) bitrate: Option<u32>,
    /// 1 to 10
    pub(crate) quality: u8,
    /// percent
    pub(crate) expected_loss: u8,
    /// percent, without a limit
    pub(crate) volume: u64,
    /// 0 left, 100 right
    pub(crate) position: u8,
    /// Where they are not the room's: packets of a window, and the level in -dBov.
    pub(crate) talk: (Option<u64>, Option<u64>),
    pub(crate) denoise: bool,
    /// The group's place among the room's.
    pub(crate) group: Option<usize>,
}

impl Settings {
    /// Reads those of somebody who joins.
    pub(crate) fn joining(fields: Fields<'_>, room: &RoomOptions) -> Result<Self, Refusal> {
        let group = group(fields, room)?;
        let quality = quality(fields)?.unwrap_or(QUALITY);
        let loss = expected_loss(fields)?.unwrap_or(room.expected_loss);
        let codec = read_codec(fields, "codec")?.unwrap_or(AudioCodec::Opus);
        let above_0 = |name| -> Result<Option<u64>, Refusal> {
            Ok(fields.positive(name)?.filter(|number| *number > 0))
        };
        let talk = (
            above_0("audio_active_packets")?,
            above_0("audio_level_average")?,
        );
        Self::coming(fields, room, (group, codec, quality, loss), talk)
    }

    /// Those of somebody on a telephone.
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
            talk: (None, None),
            denoise: room.denoise,
            group: None,
        }
    }

    /// Reads those of somebody who goes on to another room.
    pub(crate) fn changing(&self, fields: Fields<'_>, room: &RoomOptions) -> Result<Self, Refusal> {
        let group = group(fields, room)?;
        let quality = quality(fields)?.unwrap_or(self.quality);
        let loss = expected_loss(fields)?.unwrap_or(self.expected_loss);
        Self::coming(fields, room, (group, self.codec, quality, loss), self.talk)
    }

    fn coming(
        fields: Fields<'_>,
        room: &RoomOptions,
        (group, codec, quality, expected_loss): (Option<usize>, AudioCodec, u8, u8),
        talk: (Option<u64>, Option<u64>),
    ) -> Result<Self, Refusal> {
        let suspended = fields.boolean("suspended")?.unwrap_or(false);
        Ok(Settings {
            display: fields.string("display")?.map(str::to_owned),
            muted: fields.boolean("muted")?.unwrap_or(false),
            suspended,
            pause_events: suspended && fields.boolean("pause_events")?.unwrap_or(false),
            codec,
            bitrate: bitrate(fields, "bitrate")?.or(room.bitrate),
            quality,
            expected_loss,
            volume: fields.positive("volume")?.unwrap_or(100),
            position: position(fields)?.unwrap_or(50),
            talk,
            denoise: fields.boolean("denoise")?.unwrap_or(room.denoise),
            group,
        })
    }

    /// What they are after a `configure`. Nothing changes if one of its members cannot be.
    pub(crate) fn configured(
        &self,
        fields: Fields<'_>,
        room: &RoomOptions,
    ) -> Result<Self, Refusal> {
        let mut settings = self.clone();
        settings.muted = fields.boolean("muted")?.unwrap_or(settings.muted);
        if let Some(display) = fields.string("display")? {
            settings.display = Some(display.to_owned());
        }
        if fields.has("bitrate") {
            settings.bitrate = bitrate(fields, "bitrate")?;
        }
        settings.quality = quality(fields)?.unwrap_or(settings.quality);
        settings.expected_loss = expected_loss(fields)?.unwrap_or(settings.expected_loss);
        settings.volume = fields.positive("volume")?.unwrap_or(settings.volume);
        if room.spatial {
            settings.position = position(fields)?.unwrap_or(settings.position);
        }
        settings.denoise = fields.boolean("denoise")?.unwrap_or(settings.denoise);
        if let Some(group) = fields.string("group")?
            && !room.groups.is_empty()
        {
            settings.group = Some(room.group(group)?);
        }
        Ok(settings)
    }

    /// Whether it is told only of what concerns itself.
    pub(crate) const fn is_paused(&self) -> bool {
        self.suspended && self.pause_events
    }

    /// The same for the mixer. `levels`: its packets say how loud they are; `fec`: it takes in-band FEC.
    pub(crate) fn mixed(
        &self,
        room: &RoomOptions,
        immune: bool,
        (levels, fec): (bool, bool),
    ) -> ParticipantOptions {
        let (packets, level) = self.talk;
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

fn group(fields: Fields<'_>, room: &RoomOptions) -> Result<Option<usize>, Refusal> {
    if room.groups.is_empty() {
        return Ok(None);
    }
    room.group(fields.required_string("group")?).map(Some)
}

fn quality(fields: Fields<'_>) -> Result<Option<u8>, Refusal> {
    let quality = fields.positive("quality")?.map(u8::try_from).transpose();
    match quality {
        Ok(quality) if quality.is_none_or(|quality| (1..=10).contains(&quality)) => Ok(quality),
        Ok(_) | Err(_) => Err(Refusal::value("quality", "1 to 10")),
    }
}

fn expected_loss(fields: Fields<'_>) -> Result<Option<u8>, Refusal> {
    match fields.positive("expected_loss")? {
        Some(loss) if loss > MAX_LOSS => Err(Refusal::value("expected_loss", "0 to 20")),
        loss => Ok(loss.and_then(|loss| u8::try_from(loss).ok())),
    }
}

fn position(fields: Fields<'_>) -> Result<Option<u8>, Refusal> {
    let position = fields.positive("spatial_position")?;
    Ok(position.map(|position| u8::try_from(position.min(100)).unwrap_or(100)))
}
