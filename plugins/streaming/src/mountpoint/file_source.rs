//! Mountpoints that play files: `live` files for all viewers together, `ondemand` files for each
//! viewer from the start.

use std::time::Duration;

use portunus_core::Mid;
use portunus_core::media::ingest::{
    Ingest, IngestFeed, IngestId, IngestOptions, PacketFeed, packet_feed,
};
use portunus_core::media::{KeyframeCache, MediaPlane, SourceRef};
use portunus_core::sdp::Kind;
use portunus_files::{FileError, Kind as TrackKind, MediaFile, OpenOptions, Play, Track};
use portunus_player::{Feed, Player};
use tokio::task::spawn_blocking;

use super::opening::Feeding;
use super::{Mountpoint, Stream};
use crate::bounds::Bounds;
use crate::refusal::Refusal;
use crate::spec::{FileSpec, MediaKind, MediaSpec, SourceSpec, StreamCodec, assign_payload_types};

/// A new viewer of a file gets the picture since its last keyframe: files have them far apart.
pub(super) const KEYFRAMES_OF_FILES: KeyframeCache = KeyframeCache {
    max_age: Duration::from_secs(10),
    max_bytes: 8 << 20,
};

/// Plays the file from now on, for all viewers.
pub(super) async fn open_live(
    spec: &FileSpec,
    media: &MediaPlane,
    bounds: &Bounds,
) -> Result<(Vec<Stream>, Feeding), Refusal> {
    let file = open_file(spec, bounds).await?;
    let streams = streams_of(&file, spec)?;
    let (ingests, feeds) = add_ingests(&streams, media);
    let streams = streams.into_iter().zip(&ingests);
    let streams =
        streams.map(|(stream, ingest)| stream.fed(ingest.id.into(), ingest.status.clone()));
    let streams = streams.collect();
    let ids = ingests.iter().map(|ingest| ingest.id).collect();
    let player = Player::start(Box::new(file), into_player(feeds), &spec.filename);
    Ok((streams, Feeding::new(ids, Some(player))))
}

/// Reads the streams of a file that plays for each viewer, and its duration if it has one.
pub(super) async fn open_on_demand(
    spec: &FileSpec,
    bounds: &Bounds,
) -> Result<(Vec<Stream>, Option<Duration>), Refusal> {
    let file = open_file(spec, bounds).await?;
    Ok((streams_of(&file, spec)?, file.duration()))
}

/// A file that plays for one viewer. Dropping it ends it.
pub(crate) struct Playing {
    ingests: Vec<IngestId>,
    media: MediaPlane,
    player: Player,
}

impl Playing {
    /// Continues at `position` of the file. Returns false if the playback has ended.
    pub(crate) fn seek(&self, position: Duration) -> bool {
        self.player.seek(position)
    }

    /// Pauses or resumes the playback.
    pub(crate) fn hold(&self, hold: bool) {
        self.player.hold(hold);
    }

    /// Returns the source of the stream with this index.
    pub(crate) fn source(&self, stream: usize) -> Option<SourceRef> {
        self.ingests.get(stream).copied().map(SourceRef::from)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        for ingest in &self.ingests {
            self.media.remove_ingest(*ingest);
        }
    }
}

impl std::fmt::Debug for Playing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Playing({:?})", self.ingests)
    }
}

impl Mountpoint {
    /// Starts to play the file for a viewer. Returns `None` unless each viewer has its own
    /// playback.
    pub(crate) fn play(&self) -> Option<Playing> {
        let SourceSpec::OnDemand(spec) = &self.spec.source else {
            return None;
        };
        let (ingests, feeds) = add_ingests(&self.streams, &self.media);
        let (bounds, name) = (self.bounds.clone(), spec.filename.clone());
        let options = options(spec);
        let open = move || -> Result<Box<dyn Play>, FileError> {
            let file = MediaFile::open(&bounds.file(&name)?, &options)?;
            Ok(Box::new(file))
        };
        Some(Playing {
            ingests: ingests.iter().map(|ingest| ingest.id).collect(),
            media: self.media.clone(),
            player: Player::open(open, into_player(feeds), spec.filename.clone()),
        })
    }
}

fn options(spec: &FileSpec) -> OpenOptions {
    OpenOptions {
        audio: spec.audio,
        video: spec.video.unwrap_or(true),
        looping: true,
    }
}

async fn open_file(spec: &FileSpec, bounds: &Bounds) -> Result<MediaFile, Refusal> {
    let refuse = |error: &dyn std::fmt::Display| {
        Refusal::CannotCreate(format!("the file {}: {error}", spec.filename))
    };
    let (name, bounds, options) = (spec.filename.clone(), bounds.clone(), options(spec));
    let opened = spawn_blocking(move || MediaFile::open(&bounds.file(&name)?, &options)).await;
    opened
        .map_err(|error| refuse(&error))?
        .map_err(|error| refuse(&error))
}

/// Returns the streams of a file's tracks. The options of the mountpoint have to fit.
fn streams_of(file: &MediaFile, spec: &FileSpec) -> Result<Vec<Stream>, Refusal> {
    let has = |kind| file.tracks().iter().any(|track| track.codec.kind() == kind);
    if spec.video == Some(true) && !has(TrackKind::Video) {
        let reason = format!("the file {}: no video track in it", spec.filename);
        return Err(Refusal::CannotCreate(reason));
    }
    let tracks = file.tracks().iter().enumerate();
    let streams = tracks.map(|(place, track)| stream_of(track, place, spec));
    let mut streams: Vec<_> = streams.collect::<Result<_, _>>()?;
    assign_payload_types(&mut streams).map_err(|problem| problem.refusal)?;
    let streams = streams.into_iter().map(|stream| Stream::new(stream, None));
    Ok(streams.collect())
}

fn stream_of(track: &Track, place: usize, spec: &FileSpec) -> Result<MediaSpec, Refusal> {
    let (kind, media, offer) = match track.codec.kind() {
        TrackKind::Audio => (Kind::Audio, MediaKind::Audio, &spec.offer.audio),
        TrackKind::Video => (Kind::Video, MediaKind::Video, &spec.offer.video),
    };
    let refuse = |reason: String| Refusal::CannotCreate(format!("{}: {reason}", spec.filename));
    let name = track.codec.name().to_ascii_lowercase();
    let codec = StreamCodec::from_name(&name, kind);
    let codec = codec.ok_or_else(|| refuse(format!("{name} cannot be offered")))?;
    if let Some(wanted) = offer.codec.filter(|wanted| *wanted != codec) {
        let wanted = wanted.name();
        return Err(refuse(format!("the {kind:?} is {name}, not {wanted}")));
    }
    let mid = Mid::new(&place.to_string()).ok_or_else(|| refuse("no mid".to_owned()))?;
    let fmtp = offer.fmtp.clone().or_else(|| track.fmtp.clone());
    let mut stream = MediaSpec::new(media, mid);
    stream.pt = offer.pt.or(track.codec.static_pt());
    stream.codec = Some(codec);
    stream.fmtp = fmtp;
    Ok(stream)
}

fn into_player(feeds: Vec<PacketFeed>) -> Vec<Feed> {
    feeds.into_iter().map(Feed::from).collect()
}

/// Adds an ingest for each stream. Returns the ingests and their feeds.
fn add_ingests(streams: &[Stream], media: &MediaPlane) -> (Vec<Ingest>, Vec<PacketFeed>) {
    let codecs = streams
        .iter()
        .filter_map(|stream| Some((stream.kind(), stream.spec.codec?)));
    codecs
        .map(|(kind, codec)| {
            let (feed, receiver) = packet_feed(1);
            let from = IngestFeed::Packets(receiver);
            let options = IngestOptions::rtp(codec.codec(), codec.clock_rate(), from);
            let ingest = media.add_ingest(options);
            if kind == MediaKind::Video {
                media.keep_keyframe(ingest.id, Some(KEYFRAMES_OF_FILES));
            }
            (ingest, feed)
        })
        .unzip()
}
