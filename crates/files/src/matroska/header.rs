//! The elements before the first cluster.

use mkv_element::prelude::{
    Audio, Channels, CodecDelay, CodecId, CodecPrivate, DateUtc, DocType, DocTypeReadVersion,
    DocTypeVersion, Ebml, EbmlReadVersion, EbmlVersion, Element, FlagLacing, Info, Language,
    MuxingApp, Name, PixelHeight, PixelWidth, Projection, ProjectionPoseRoll, SamplingFrequency,
    SeekPreRoll, TimestampScale, Title, TrackEntry, TrackNumber, TrackType, TrackUid, Tracks,
    Video, WritingApp,
};

use super::ebml::{Id, UNKNOWN_SIZE, put_element, put_void};
use crate::bitstream::Setup;
use crate::container::{Container, ContainerError, FileInfo, Rotation, TrackSetup};
use crate::matroska::{A_LAW, EPOCH, MU_LAW};
use crate::opus::OpusHead;

/// The nanoseconds of a tick: times are in ms.
const TICK: u64 = 1_000_000;
/// The pre-roll of an Opus decoder after a seek (RFC 7845 section 4.6), in ns.
const OPUS_PRE_ROLL: u64 = 80_000_000;
/// The longest text in a header, in bytes.
const MAX_TEXT: usize = 500;
const APP: &str = concat!("Portunus ", env!("CARGO_PKG_VERSION"));

/// A header, and the positions of its parts that change separately.
#[derive(Debug)]
pub(super) struct Header {
    pub bytes: Vec<u8>,
    /// The position of the segment's size: 8 bytes.
    pub segment_size: u64,
    /// The position of the duration: 8 bytes.
    pub duration: u64,
}

impl Header {
    /// Returns the start of the segment's body, the origin of positions.
    pub fn segment(&self) -> u64 {
        self.segment_size + 8
    }

    /// Fills the header up to `room` bytes.
    pub fn fill(&mut self, room: usize) -> Result<(), ContainerError> {
        let left = room.checked_sub(self.bytes.len()).filter(|left| *left != 1);
        let left = left.ok_or(ContainerError::NoRoom(self.bytes.len()))?;
        put_void(&mut self.bytes, left);
        Ok(())
    }
}

/// Returns a header without filling. `duration` is in ms, or 0 if it is unknown. `cues` is the
/// position of the index in the segment, if there is one.
pub(super) fn header<'a>(
    container: Container,
    info: &FileInfo,
    tracks: impl Iterator<Item = (usize, &'a TrackSetup)>,
    duration: u64,
    cues: Option<u64>,
) -> Result<Header, ContainerError> {
    let doc_type = match container {
        Container::WebM => "webm",
        Container::Matroska | Container::Mp4 => "matroska",
    };
    let mut bytes = Vec::with_capacity(crate::container::HEADER_ROOM);
    let mut ebml_body = Vec::new();
    encode_body(&ebml(doc_type), &mut ebml_body);
    put_element(&mut bytes, Id::EBML, &ebml_body);
    Id::SEGMENT.put(&mut bytes);
    let segment_size = bytes.len() as u64;
    bytes.extend(UNKNOWN_SIZE);
    let segment = bytes.len();

    let mut info_body = Vec::new();
    encode_body(&segment_info(info), &mut info_body);
    Id::DURATION.put(&mut info_body);
    info_body.push(0x88);
    info_body.extend((duration as f64).to_be_bytes());
    let entries = tracks.map(|(track, setup)| track_entry(track, setup, info.started_us));
    let tracks = Tracks {
        track_entry: entries.collect::<Result<_, _>>()?,
        ..Tracks::default()
    };
    let mut tracks_body = Vec::new();
    encode_body(&tracks, &mut tracks_body);

    // The positions depend on the length of the list of positions.
    let seek_head_len = seek_head(0, 0, cues).len();
    let info_at = seek_head_len as u64;
    let info_len = 12 + info_body.len();
    let tracks_at = info_at + info_len as u64;
    bytes.extend(seek_head(info_at, tracks_at, cues));
    put_element(&mut bytes, Id::INFO, &info_body);
    let duration = (segment + seek_head_len + info_len - 8) as u64;
    put_element(&mut bytes, Id::TRACKS, &tracks_body);
    Ok(Header {
        bytes,
        segment_size,
        duration,
    })
}

fn ebml(doc_type: &str) -> Ebml {
    Ebml {
        ebml_version: Some(EbmlVersion(1)),
        ebml_read_version: Some(EbmlReadVersion(1)),
        doc_type: Some(DocType(doc_type.to_owned())),
        doc_type_version: Some(DocTypeVersion(4)),
        doc_type_read_version: Some(DocTypeReadVersion(2)),
        ..Ebml::default()
    }
}

/// Returns the list of positions, counted from the segment's body. Its length depends on whether
/// there are cues only.
pub(super) fn seek_head(info: u64, tracks: u64, cues: Option<u64>) -> Vec<u8> {
    let mut body = Vec::new();
    let places = [
        (Id::INFO, Some(info)),
        (Id::TRACKS, Some(tracks)),
        (Id::CUES, cues),
    ];
    for (id, place) in places {
        let Some(place) = place else { continue };
        let mut seek = Vec::new();
        Id::SEEK_ID.put(&mut seek);
        seek.push(0x84);
        id.put(&mut seek);
        Id::SEEK_POSITION.put(&mut seek);
        seek.push(0x88);
        seek.extend(place.to_be_bytes());
        Id::SEEK.put(&mut body);
        body.push(0x80 | seek.len() as u8);
        body.extend(seek);
    }
    let mut bytes = Vec::new();
    put_element(&mut bytes, Id::SEEK_HEAD, &body);
    bytes
}

/// Returns everything except the duration, which comes last so that its position is known.
fn segment_info(info: &FileInfo) -> Info {
    let started = i64::try_from(info.started_us).unwrap_or(i64::MAX);
    Info {
        timestamp_scale: TimestampScale(TICK),
        date_utc: (started > 0)
            .then(|| DateUtc(started.saturating_sub(EPOCH).saturating_mul(1_000))),
        title: info.title.as_deref().map(|title| Title(cut(title))),
        muxing_app: MuxingApp(APP.to_owned()),
        writing_app: WritingApp(APP.to_owned()),
        ..Info::default()
    }
}

/// Returns the number of a track in the file.
pub(super) const fn track_number(track: usize) -> u8 {
    track as u8 + 1
}

fn track_entry(
    track: usize,
    setup: &TrackSetup,
    started_us: u64,
) -> Result<TrackEntry, ContainerError> {
    let number = u64::from(track_number(track));
    let mut entry = TrackEntry {
        track_number: TrackNumber(number),
        // Any number but 0, different in each file.
        track_uid: TrackUid(started_us.wrapping_mul(127).wrapping_add(number).max(1)),
        flag_lacing: FlagLacing(0),
        language: Language("und".to_owned()),
        name: setup.name.as_deref().map(|name| Name(cut(name))),
        ..TrackEntry::default()
    };
    let (codec, private) = codec(track, &setup.setup)?;
    entry.codec_id = CodecId(codec.to_owned());
    entry.codec_private = private.map(|private| CodecPrivate(private.into()));
    match &setup.setup {
        Setup::Opus { channels } => {
            entry.track_type = TrackType(2);
            entry.codec_delay = CodecDelay(0);
            entry.seek_pre_roll = SeekPreRoll(OPUS_PRE_ROLL);
            entry.audio = Some(audio(48_000, *channels));
        }
        Setup::Pcmu | Setup::Pcma => {
            entry.track_type = TrackType(2);
            entry.audio = Some(audio(8_000, 1));
        }
        _ => {
            let picture = setup.picture.ok_or(ContainerError::NoPicture(track))?;
            entry.track_type = TrackType(1);
            entry.video = Some(Video {
                pixel_width: PixelWidth(u64::from(picture.width)),
                pixel_height: PixelHeight(u64::from(picture.height)),
                projection: projection(setup.rotation),
                ..Video::default()
            });
        }
    }
    Ok(entry)
}

fn audio(rate: u32, channels: u8) -> Audio {
    Audio {
        sampling_frequency: SamplingFrequency(f64::from(rate)),
        channels: Channels(u64::from(channels)),
        ..Audio::default()
    }
}

/// Returns the rotation, which Matroska counts counter-clockwise (RFC 9559 section 5.1.4.1.28.46).
fn projection(rotation: Rotation) -> Option<Projection> {
    let roll = match rotation {
        Rotation::R0 => return None,
        Rotation::R90 => -90.0,
        Rotation::R180 => 180.0,
        Rotation::R270 => 90.0,
    };
    Some(Projection {
        projection_pose_roll: ProjectionPoseRoll(roll),
        ..Projection::default()
    })
}

/// Returns the name of a codec, and the private data for decoders.
fn codec(track: usize, setup: &Setup) -> Result<(&'static str, Option<Vec<u8>>), ContainerError> {
    let incomplete = ContainerError::Incomplete(track);
    Ok(match setup {
        Setup::Vp8 => ("V_VP8", None),
        Setup::Vp9 { .. } => ("V_VP9", None),
        Setup::Av1 { .. } => ("V_AV1", Some(setup.av1c().ok_or(incomplete)?)),
        Setup::H264 { .. } => ("V_MPEG4/ISO/AVC", Some(setup.avcc().ok_or(incomplete)?)),
        Setup::H265 { .. } => ("V_MPEGH/ISO/HEVC", Some(setup.hvcc().ok_or(incomplete)?)),
        Setup::Pcmu => ("A_MS/ACM", Some(wave_format(MU_LAW))),
        Setup::Pcma => ("A_MS/ACM", Some(wave_format(A_LAW))),
        Setup::Opus { channels } => {
            let head = OpusHead {
                channels: *channels,
                ..OpusHead::default()
            };
            ("A_OPUS", Some(head.packet()))
        }
    })
}

/// Returns a WAVEFORMATEX structure: one channel with 8,000 bytes per second.
fn wave_format(tag: u16) -> Vec<u8> {
    const RATE: u32 = 8_000;
    let mut bytes = Vec::with_capacity(18);
    bytes.extend(tag.to_le_bytes());
    bytes.extend(1_u16.to_le_bytes());
    // Samples and bytes per second.
    bytes.extend(RATE.to_le_bytes());
    bytes.extend(RATE.to_le_bytes());
    // Bytes and bits of a sample, and the length of the rest.
    for value in [1_u16, 8, 0] {
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

/// Truncates a text for a header.
fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().replace('\0', "")
}

/// Writing to memory does not fail.
fn encode_body<T: Element>(element: &T, out: &mut Vec<u8>) {
    let _ = element.encode_body(out);
}
