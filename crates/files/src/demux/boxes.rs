//! The boxes of an MP4 index that are needed. Others are not parsed.

use mp4_atom::{
    Atom, Av1c, Avcc, Buf, Co64, Ctts, DecodeMaybe, Dops, Elst, FourCC, Hdlr, Header, Hvcc, Mdhd,
    Mfra, Moof, Moov, Mvhd, Prft, ReadFrom, Stbl, Stco, Stsc, Stss, Stsz, Stts, Tfdt, Tfhd, Tfra,
    Tkhd, Trex, Trun, VpcC,
};

use super::Input;
use crate::FileError;

/// A track in the index.
pub(crate) struct Trak {
    pub id: u32,
    pub handler: FourCC,
    pub timescale: u32,
    pub duration: u64,
    /// The start of the edit list, in units of the timescale.
    pub start: u64,
    /// The start of the track after that of the movie, in units of the movie's timescale.
    pub delay: u64,
    pub entry: SampleEntry,
    /// The sample table without sample entries.
    pub table: Stbl,
}

/// A sample entry: the codec and its setup.
pub(crate) enum SampleEntry {
    H264(Avcc),
    H265(Hvcc),
    Av1(Av1c),
    Vp8,
    Vp9(VpcC),
    Opus(Dops),
    Other(FourCC),
}

/// The bytes of a sample entry before its boxes (ISO/IEC 14496-12 section 12.1.3 and 12.2.3).
const VISUAL_ENTRY: usize = 78;
const AUDIO_ENTRY: usize = 28;

/// Whether the index announces fragments.
pub(crate) fn is_fragmented(moov: &[u8]) -> bool {
    find(moov, b"mvex").is_some()
}

/// Returns the tracks of the index.
pub(crate) fn traks(moov: &[u8]) -> Result<Vec<Trak>, FileError> {
    boxes(moov)
        .filter(|(kind, _)| *kind == FourCC::new(b"trak"))
        .map(|(_, body)| trak(body))
        .collect()
}

/// Returns the defaults for the frames of fragments, by track.
pub(crate) fn trexes(moov: &[u8]) -> Result<Vec<Trex>, FileError> {
    let mvex = find(moov, b"mvex").unwrap_or_default();
    let own = boxes(mvex).filter(|(kind, _)| *kind == Trex::KIND);
    own.map(|(_, body)| decode_body(body)).collect()
}

/// The frames of a track in a fragment.
pub(crate) struct Traf {
    pub head: Tfhd,
    pub begins: Option<Tfdt>,
    pub runs: Vec<Trun>,
}

/// Returns the tracks of a fragment.
pub(crate) fn trafs(moof: &[u8]) -> Result<Vec<Traf>, FileError> {
    let own = boxes(moof).filter(|(kind, _)| *kind == mp4_atom::Traf::KIND);
    let trafs = own.map(|(_, body)| {
        let runs = boxes(body).filter(|(kind, _)| *kind == Trun::KIND);
        Ok(Traf {
            head: decode(body)?,
            begins: optional(body)?,
            runs: runs
                .map(|(_, run)| decode_body(run))
                .collect::<Result<_, _>>()?,
        })
    });
    trafs.collect()
}

/// Returns the keyframes of a track in the index of fragments, or `None` if it lacks the track.
pub(crate) fn tfra(mfra: &[u8], track: u32) -> Result<Option<Tfra>, FileError> {
    for (_, body) in boxes(mfra).filter(|(kind, _)| *kind == Tfra::KIND) {
        let found: Tfra = decode_body(body)?;
        if found.track_id == track {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the timescale of the movie.
pub(crate) fn movie_timescale(moov: &[u8]) -> Result<u32, FileError> {
    Ok(decode::<Mvhd>(moov)?.timescale)
}

fn trak(body: &[u8]) -> Result<Trak, FileError> {
    let mdia = required(body, b"mdia")?;
    let header: Mdhd = decode(mdia)?;
    let stbl = required(required(mdia, b"minf")?, b"stbl")?;
    let edits = find(body, b"edts").and_then(|edts| find(edts, b"elst"));
    let edits = edits.map(decode_body::<Elst>).transpose()?;
    let entries = edits.map(|elst| elst.entries).unwrap_or_default();
    // Empty edits come before the first one with media.
    let first = entries.iter().position(|entry| entry.media_time.is_some());
    let (empty, edits) = entries
        .split_at_checked(first.unwrap_or(0))
        .unwrap_or_default();
    let start = edits.first().and_then(|entry| entry.media_time);
    let durations = empty.iter().map(|entry| entry.segment_duration);
    Ok(Trak {
        id: decode::<Tkhd>(body)?.track_id,
        handler: decode::<Hdlr>(mdia)?.handler,
        timescale: header.timescale,
        duration: header.duration,
        start: start.unwrap_or(0),
        delay: durations.fold(0, u64::saturating_add),
        entry: sample_entry(required(stbl, b"stsd")?)?,
        table: Stbl {
            stts: decode::<Stts>(stbl)?,
            ctts: optional::<Ctts>(stbl)?,
            stss: optional::<Stss>(stbl)?,
            stsc: decode::<Stsc>(stbl)?,
            stsz: decode::<Stsz>(stbl)?,
            stco: optional::<Stco>(stbl)?,
            co64: optional::<Co64>(stbl)?,
            ..Stbl::default()
        },
    })
}

/// Returns the first sample entry. Using another one is refused later.
fn sample_entry(stsd: &[u8]) -> Result<SampleEntry, FileError> {
    // Version, flags, and the number of entries.
    let entries = stsd.get(8..).unwrap_or_default();
    let (kind, body) = boxes(entries)
        .next()
        .ok_or_else(|| FileError::corrupt("a track without sample entry"))?;
    let video = body.get(VISUAL_ENTRY..).unwrap_or_default();
    let audio = body.get(AUDIO_ENTRY..).unwrap_or_default();
    Ok(match &<[u8; 4]>::from(kind) {
        b"avc1" | b"avc3" => SampleEntry::H264(decode(video)?),
        b"hvc1" | b"hev1" => SampleEntry::H265(decode(video)?),
        b"av01" => SampleEntry::Av1(decode(video)?),
        b"vp08" => SampleEntry::Vp8,
        b"vp09" => SampleEntry::Vp9(decode(video)?),
        b"Opus" => SampleEntry::Opus(decode(audio)?),
        _ => SampleEntry::Other(kind),
    })
}

/// Returns the type and the length of the next box, if all of it is there.
pub(crate) fn read_header(input: &mut Input) -> Result<Option<(FourCC, u64)>, FileError> {
    if input.is_at_end() {
        return Ok(None);
    }
    let at = input.position();
    let header = match Header::read_from(input) {
        Ok(header) => header,
        Err(mp4_atom::Error::Io(error)) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            return Err(error.into());
        }
        Err(mp4_atom::Error::Io(_) | mp4_atom::Error::UnexpectedEof) => return Ok(None),
        Err(error) => return Err(FileError::corrupt(format!("the box at {at}: {error}"))),
    };
    let rest = input.len().saturating_sub(input.position());
    let size = header.size.map_or(rest, |size| size as u64);
    Ok((size <= rest).then_some((header.kind, size)))
}

/// Returns the boxes in `body`, up to a malformed one.
fn boxes(mut body: &[u8]) -> impl Iterator<Item = (FourCC, &[u8])> {
    std::iter::from_fn(move || {
        let header = Header::decode_maybe(&mut body).ok()??;
        let size = header.size.unwrap_or(body.remaining());
        let (own, rest) = body.split_at_checked(size)?;
        body = rest;
        Some((header.kind, own))
    })
}

fn find<'a>(body: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    let found = boxes(body).find(|(it, _)| *it == FourCC::new(kind));
    found.map(|(_, own)| own)
}

fn required<'a>(body: &'a [u8], kind: &[u8; 4]) -> Result<&'a [u8], FileError> {
    find(body, kind).ok_or_else(|| missing(FourCC::new(kind)))
}

fn missing(kind: FourCC) -> FileError {
    FileError::corrupt(format!("there is no {kind} box where one has to be"))
}

/// Decodes the box of this type in `body`.
fn decode<T: Atom>(body: &[u8]) -> Result<T, FileError> {
    optional(body)?.ok_or_else(|| missing(T::KIND))
}

fn optional<T: Atom>(body: &[u8]) -> Result<Option<T>, FileError> {
    find(body, &T::KIND.into()).map(decode_body).transpose()
}

fn decode_body<T: Atom>(mut own: &[u8]) -> Result<T, FileError> {
    T::decode_body(&mut own)
        .map_err(|error| FileError::corrupt(format!("the {} box: {error}", T::KIND)))
}

/// The type of the box that describes a fragment.
pub(crate) const MOOF: FourCC = Moof::KIND;

/// Reads the time of day in a box.
pub(crate) fn reference_time(body: &[u8]) -> Result<Prft, FileError> {
    decode_body(body)
}

/// The type of the box with a time of day.
pub(crate) const PRFT: FourCC = Prft::KIND;

/// The type of the last box, which lists fragments.
pub(crate) const MFRA: FourCC = Mfra::KIND;

/// The type of the box with the index.
pub(crate) const MOOV: FourCC = Moov::KIND;
