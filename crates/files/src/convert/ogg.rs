//! Conversion of an Opus recording to Ogg Opus.

use std::io::Write;
use std::time::Duration;

use super::frames::codec_of;
use super::{ConvertError, Converted, Recordings, assemble};
use crate::assembly::Step;
use crate::mjr::Medium;
use crate::opus::{OggOpusError, OggOpusWriter, OpusHead, OpusTags, OpusTime, Placed};
use crate::track::Codec;

/// The serial number of the only stream.
const SERIAL: u32 = 1;

/// Writes the audio of `recordings`, which must contain one of Opus. `progress` gets the done part,
/// 0 to 1.
pub fn to_ogg_opus(
    recordings: &mut Recordings,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(f32),
) -> Result<Converted, ConvertError> {
    let count = |medium| {
        recordings
            .infos()
            .filter(|info| info.medium == medium)
            .count()
    };
    match (count(Medium::Audio), count(Medium::Video)) {
        (0, _) => return Err(ConvertError::Nothing("audio")),
        (1, 0) => {}
        (1, _) => {
            return Err(ConvertError::TooMany(
                "kind of media, and .opus is for audio",
            ));
        }
        _ => return Err(ConvertError::TooMany("recording of audio")),
    }
    let audio = recordings
        .infos()
        .filter(|info| info.medium == Medium::Audio);
    if !audio.map(codec_of).all(|codec| codec == Some(Codec::Opus)) {
        return Err(ConvertError::Nothing("Opus"));
    }
    let mut tags = OpusTags::default();
    if let Some(title) = recordings
        .infos()
        .find_map(|info| info.description.as_deref())
    {
        tags = tags.with("TITLE", title);
    }
    let mut converted = Converted {
        parts: 1,
        ..Converted::default()
    };
    let mut writer = OggOpusWriter::new(out, SERIAL, &OpusHead::default(), &tags)?;
    let assembled = assemble(recordings, None, progress, &mut |_, step| {
        let Step::Frame(frame) = step else {
            return Ok(());
        };
        match writer.packet(OpusTime::from(frame.at), frame.data) {
            Ok(Placed::Written) => converted.frames += 1,
            Ok(Placed::Late) | Err(OggOpusError::Malformed | OggOpusError::Gap(_)) => {}
            Err(OggOpusError::Io(error)) => return Err(error.into()),
        }
        Ok(())
    })?;
    let end = writer.end();
    match writer.finish(end) {
        Err(OggOpusError::Io(error)) => return Err(error.into()),
        Err(OggOpusError::Malformed | OggOpusError::Gap(_)) | Ok(_) => {}
    }
    if converted.frames == 0 {
        return Err(ConvertError::Nothing("packet of Opus"));
    }
    converted.duration = Duration::from(end);
    converted.lost = assembled.lost;
    converted.gaps = assembled.gaps;
    Ok(converted)
}
