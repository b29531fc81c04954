//! The start of a file: brands, the index without samples, and room for a longer one.

use mp4_atom::{
    Audio, Av01, Av1c, Avc1, Codec, Dinf, Dops, Dref, Encode, Ftyp, Hdlr, Hvc1, Matrix, Mdhd, Mdia,
    Mehd, Minf, Moov, Mvex, Mvhd, Opus, Smhd, Stbl, Stco, Stsd, Tkhd, Trak, Trex, Url, Visual,
    Vmhd, Vp09, VpcC,
};

use super::fragment::{ANY_SAMPLE, KEYFRAME};
use crate::bitstream::{Picture, Setup, avcc, hvcc};
use crate::container::{Container, ContainerError, FileInfo, Rotation, TrackSetup};
use crate::opus::OpusTime;
use crate::track::Kind;

/// The timescale of the movie.
const MOVIE_RATE: u32 = 1_000;
/// The seconds from 1904, MP4's origin, to 1970.
const EPOCH: u64 = 2_082_844_800;
/// The length of the shortest `free` box.
const FREE_LEN: usize = 8;

/// A track in the header, with its duration so far in its own units.
pub(super) struct HeaderTrack<'a> {
    pub number: usize,
    pub setup: &'a TrackSetup,
    pub duration: u64,
}

/// Returns the timescale of a track.
pub(super) fn rate(setup: &Setup) -> u32 {
    setup.codec().clock_rate()
}

/// Returns the number of a track in the file.
pub(super) fn track_id(track: usize) -> u32 {
    u32::try_from(track).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns the header of a file with these tracks. `is_over`: the durations are known.
pub(super) fn header(
    info: &FileInfo,
    tracks: &[HeaderTrack<'_>],
    is_over: bool,
) -> Result<Vec<u8>, ContainerError> {
    let created = (info.started_us / 1_000_000).saturating_add(EPOCH);
    let duration = |track: &HeaderTrack<'_>| match is_over {
        true => in_movie(track.duration, rate(&track.setup.setup), MOVIE_RATE),
        false => 0,
    };
    let longest = tracks.iter().map(duration).max().unwrap_or(0);
    let mut traks = Vec::with_capacity(tracks.len());
    for track in tracks {
        traks.push(trak(track, created, duration(track), is_over)?);
    }
    let moov = Moov {
        mvhd: Mvhd {
            creation_time: created,
            modification_time: created,
            timescale: MOVIE_RATE,
            duration: longest,
            rate: 1.into(),
            volume: 1.into(),
            matrix: Matrix::default(),
            next_track_id: track_id(info.tracks),
        },
        mvex: Some(Mvex {
            mehd: is_over.then_some(Mehd {
                fragment_duration: longest,
            }),
            trex: tracks.iter().map(trex).collect(),
        }),
        trak: traks,
        ..Moov::default()
    };
    let mut bytes = Vec::new();
    ftyp(tracks)
        .encode(&mut bytes)
        .map_err(|_| incomplete(tracks))?;
    moov.encode(&mut bytes).map_err(|_| incomplete(tracks))?;
    Ok(bytes)
}

/// Fills a header up to its room.
pub(super) fn fill(header: &mut Vec<u8>, room: usize) -> Result<(), ContainerError> {
    let len = header.len();
    let free = room
        .checked_sub(len)
        .filter(|free| *free >= FREE_LEN)
        .ok_or(ContainerError::NoRoom(len))?;
    header.extend(u32::try_from(free).unwrap_or(u32::MAX).to_be_bytes());
    header.extend(b"free");
    header.resize(room, 0);
    Ok(())
}

fn incomplete(tracks: &[HeaderTrack<'_>]) -> ContainerError {
    ContainerError::Incomplete(tracks.first().map_or(0, |track| track.number))
}

/// Converts `ticks` of a track to units of the movie, whose timescale is `movie_rate`, rounded up.
pub(super) fn in_movie(ticks: u64, rate: u32, movie_rate: u32) -> u64 {
    let scaled = u128::from(ticks) * u128::from(movie_rate);
    u64::try_from(scaled.div_ceil(u128::from(rate.max(1)))).unwrap_or(u64::MAX)
}

fn ftyp(tracks: &[HeaderTrack<'_>]) -> Ftyp {
    let is_av1 = |track: &HeaderTrack<'_>| matches!(track.setup.setup, Setup::Av1 { .. });
    let mut compatible_brands = vec![b"isom".into(), b"iso6".into(), b"mp41".into()];
    if tracks.iter().any(is_av1) {
        compatible_brands.push(b"av01".into());
    }
    Ftyp {
        major_brand: b"isom".into(),
        minor_version: 0x200,
        compatible_brands,
    }
}

fn trex(track: &HeaderTrack<'_>) -> Trex {
    let is_video = track.setup.setup.codec().kind() == Kind::Video;
    Trex {
        track_id: track_id(track.number),
        default_sample_description_index: 1,
        default_sample_flags: if is_video { ANY_SAMPLE } else { KEYFRAME },
        ..Trex::default()
    }
}

fn trak(
    track: &HeaderTrack<'_>,
    created: u64,
    duration: u64,
    is_over: bool,
) -> Result<Trak, ContainerError> {
    let setup = track.setup;
    let is_video = setup.setup.codec().kind() == Kind::Video;
    let picture = match (is_video, setup.picture) {
        (true, None) => return Err(ContainerError::NoPicture(track.number)),
        (true, picture) => picture,
        (false, _) => None,
    };
    let size = picture.map_or((0, 0), |picture| {
        (short(picture.width), short(picture.height))
    });
    let codec = sample_entry(&setup.setup, size).ok_or(
        match Container::Mp4.takes(setup.setup.codec()) {
            true => ContainerError::Incomplete(track.number),
            false => ContainerError::Codec {
                container: Container::Mp4,
                codec: setup.setup.codec(),
            },
        },
    )?;
    let handler: &[u8; 4] = if is_video { b"vide" } else { b"soun" };
    Ok(Trak {
        tkhd: Tkhd {
            creation_time: created,
            modification_time: created,
            track_id: track_id(track.number),
            duration,
            alternate_group: 0,
            enabled: true,
            in_movie: true,
            volume: if is_video { 0.into() } else { 1.into() },
            matrix: picture.map_or_else(Matrix::default, |picture| matrix(setup.rotation, picture)),
            width: size.0.into(),
            height: size.1.into(),
            ..Tkhd::default()
        },
        mdia: Mdia {
            mdhd: Mdhd {
                creation_time: created,
                modification_time: created,
                timescale: rate(&setup.setup),
                duration: if is_over { track.duration } else { 0 },
                language: "und".to_owned(),
            },
            hdlr: Hdlr {
                handler: handler.into(),
                name: setup.name.clone().unwrap_or_default(),
            },
            minf: Minf {
                vmhd: is_video.then(Vmhd::default),
                smhd: (!is_video).then(Smhd::default),
                dinf: Dinf {
                    dref: Dref {
                        entries: vec![Url::default().into()],
                    },
                },
                stbl: Stbl {
                    stsd: Stsd {
                        codecs: vec![codec],
                    },
                    stco: Some(Stco::default()),
                    ..Stbl::default()
                },
                ..Minf::default()
            },
        },
        ..Trak::default()
    })
}

/// Returns the codec with its setup.
fn sample_entry(setup: &Setup, (width, height): (u16, u16)) -> Option<Codec> {
    let visual = Visual {
        data_reference_index: 1,
        width,
        height,
        ..Visual::default()
    };
    Some(match setup {
        Setup::H264 { sps, pps } => Codec::Avc1(Avc1 {
            visual,
            avcc: avcc(sps, pps)?,
            ..Avc1::default()
        }),
        Setup::H265 { vps, sps, pps } => Codec::Hvc1(Hvc1 {
            visual,
            hvcc: hvcc(vps, sps, pps)?,
            ..Hvc1::default()
        }),
        Setup::Av1 {
            sequence_header,
            config: [_, profile_level, flags, _],
        } => Codec::Av01(Av01 {
            visual,
            av1c: Av1c {
                seq_profile: profile_level >> 5,
                seq_level_idx_0: profile_level & 0x1f,
                seq_tier_0: flags & 0x80 != 0,
                high_bitdepth: flags & 0x40 != 0,
                twelve_bit: flags & 0x20 != 0,
                monochrome: flags & 0x10 != 0,
                chroma_subsampling_x: flags & 0x08 != 0,
                chroma_subsampling_y: flags & 0x04 != 0,
                chroma_sample_position: flags & 0x03,
                initial_presentation_delay: None,
                config_obus: sequence_header.clone(),
            },
            ..Av01::default()
        }),
        Setup::Vp9 {
            profile,
            bit_depth,
            subsampling,
            full_range,
        } => Codec::Vp09(Vp09 {
            visual,
            vpcc: VpcC {
                profile: *profile,
                level: vp9_level(u32::from(width) * u32::from(height)),
                bit_depth: *bit_depth,
                chroma_subsampling: *subsampling,
                video_full_range_flag: *full_range,
                // Unspecified.
                color_primaries: 2,
                transfer_characteristics: 2,
                matrix_coefficients: 2,
                codec_initialization_data: Vec::new(),
            },
            btrt: None,
            colr: None,
            pasp: None,
            spatial: None,
        }),
        Setup::Opus { channels } => Codec::Opus(Opus {
            audio: Audio {
                data_reference_index: 1,
                channel_count: u16::from(*channels),
                sample_size: 16,
                sample_rate: (OpusTime::RATE as u16).into(),
            },
            dops: Dops {
                output_channel_count: *channels,
                pre_skip: 0,
                input_sample_rate: OpusTime::RATE,
                output_gain: 0,
                channel_mapping: None,
            },
            btrt: None,
        }),
        Setup::Vp8 | Setup::Pcmu | Setup::Pcma => return None,
    })
}

/// Returns the lowest level for pictures of this size (VP9 bitstream specification, annex A).
fn vp9_level(pixels: u32) -> u8 {
    const LEVELS: [(u32, u8); 8] = [
        (36_864, 10),
        (73_728, 11),
        (122_880, 20),
        (245_760, 21),
        (552_960, 30),
        (983_040, 31),
        (2_228_224, 40),
        (8_912_896, 50),
    ];
    let level = LEVELS.iter().find(|(most, _)| pixels <= *most);
    level.map_or(60, |(_, level)| *level)
}

/// Returns the matrix that rotates the picture clockwise, and moves it back into view (ISO/IEC
/// 14496-12 section 8.3.2).
fn matrix(rotation: Rotation, picture: Picture) -> Matrix {
    const ONE: i32 = 1 << 16;
    let pixels = |length: u32| i32::from(short(length).cast_signed().max(0)) << 16;
    let (width, height) = (pixels(picture.width), pixels(picture.height));
    let (a, b, c, d, x, y) = match rotation {
        Rotation::R0 => (ONE, 0, 0, ONE, 0, 0),
        Rotation::R90 => (0, ONE, -ONE, 0, height, 0),
        Rotation::R180 => (-ONE, 0, 0, -ONE, width, height),
        Rotation::R270 => (0, -ONE, ONE, 0, 0, width),
    };
    Matrix {
        a,
        b,
        c,
        d,
        x,
        y,
        ..Matrix::default()
    }
}

/// Returns a length in pixels for boxes.
fn short(length: u32) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
