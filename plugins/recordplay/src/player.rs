//! A client that plays: the offer to it, and the feeds of its m-lines.

use std::time::Duration;

use portunus_core::media::ingest::{IngestFeed, IngestId, IngestMedia, IngestOptions, packet_feed};
use portunus_core::media::{DataMessage, DataPayload, MediaPlane, RouteOptions};
use portunus_core::record::Medium;
use portunus_core::sdp::{
    Codec, CodecName, Description, Direction, Kind, MediaOffer, Negotiated, OfferOptions,
};
use portunus_core::{ExtensionKind, ExtensionMap, Handle, Mid, Object, Pt};
use portunus_files::{Play as _, Playback, PlayedTrack};
use portunus_player::{Ended, Feed, Hold, Player as FilePlayer};
use serde_json::Value;

use crate::complete_recording::{Viewing, millis};

/// The payload types that Janus offers.
const AUDIO_PT: Pt = Pt(111);
const RED_PT: Pt = Pt(63);
/// The first one is Janus's. Another codec on the same m-line gets another one.
const VIDEO_PTS: [Pt; 5] = [Pt(100), Pt(102), Pt(104), Pt(106), Pt(108)];

/// The label that Janus's clients expect.
const DATA_CHANNEL: &str = "JanusDataChannel";

/// The default for recordings that do not describe their H.264: what browsers send, and the server
/// accepts.
const H264_FMTP: &str = "profile-level-id=42e01f;packetization-mode=1";

/// The header extensions of recorded packets that are passed on, with their ids in offers.
const PASSED: [(ExtensionKind, u8); 2] = [
    (ExtensionKind::AudioLevel, 1),
    (ExtensionKind::VideoOrientation, 13),
];
/// The id of the MID extension.
const MID: u8 = 4;

/// The player of a client.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) what: What,
    pub(crate) phase: Phase,
    pub(crate) duration: Option<Duration>,
    lines: Vec<Line>,
    /// The playback, until it starts.
    playback: Option<Playback>,
    begins_at: Option<Duration>,
    feeding: Option<Feeding>,
    pub(crate) e2ee: bool,
}

/// The played recording.
#[derive(Debug)]
pub(crate) enum What {
    Recording(Viewing),
    /// A recording of another plugin, with its own pause.
    File(String, Hold),
}

/// The phase of a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Offered,
    /// The client has answered. It starts once the PeerConnection is up.
    Answered,
    Playing,
}

/// An m-line of the server's offers.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    offer: MediaOffer,
    /// The track of the playback, or `None` if the m-line is unused now.
    track: Option<usize>,
}

/// The feeds of the m-lines. Dropping it stops them.
#[derive(Debug)]
struct Feeding {
    player: FilePlayer,
    ingests: Vec<IngestId>,
    media: MediaPlane,
}

impl Drop for Feeding {
    fn drop(&mut self) {
        for ingest in &self.ingests {
            self.media.remove_ingest(*ingest);
        }
    }
}

impl What {
    fn hold(&self) -> &Hold {
        match self {
            What::Recording(viewing) => &viewing.0.hold,
            What::File(_, hold) => hold,
        }
    }

    /// Returns the id of the recording.
    pub(crate) fn id(&self) -> Option<u64> {
        match self {
            What::Recording(viewing) => Some(viewing.0.nfo.id),
            What::File(..) => None,
        }
    }

    pub(crate) fn is_private(&self) -> Option<bool> {
        match self {
            What::Recording(viewing) => Some(viewing.0.nfo.is_private),
            What::File(..) => None,
        }
    }

    /// Returns the name for people.
    pub(crate) fn name(&self) -> &str {
        match self {
            What::Recording(viewing) => &viewing.0.nfo.name,
            What::File(name, _) => name,
        }
    }

    /// Describes a status to the client.
    pub(crate) fn status(&self, status: &str) -> Object {
        let file = match self {
            What::Recording(_) => None,
            What::File(name, _) => Some(name.as_str()),
        };
        Object::new()
            .with("status", status)
            .with_some("id", self.id())
            .with_some("file", file)
    }
}

impl Player {
    /// Returns a player on the m-lines that the client knows, and on new ones.
    pub(crate) fn new(what: What, playback: Playback, known: Vec<Line>) -> Self {
        let mut lines = known;
        for line in &mut lines {
            line.track = None;
            line.offer.direction = Direction::Inactive;
        }
        for (index, track) in playback.tracks().iter().enumerate() {
            offer_track(&mut lines, track, index);
        }
        Self {
            what,
            phase: Phase::Offered,
            duration: playback.duration(),
            e2ee: playback.tracks().iter().any(|track| track.encrypted),
            lines,
            playback: Some(playback),
            begins_at: None,
            feeding: None,
        }
    }

    /// Returns the m-lines, for the next recording on the same PeerConnection.
    pub(crate) fn into_lines(self) -> Vec<Line> {
        self.lines
    }

    pub(crate) fn offer(&self) -> Description {
        let name = match self.what.id() {
            Some(id) => format!("Recording {id}"),
            None => self.what.name().to_owned(),
        };
        Description::offer(OfferOptions {
            name,
            session_id: String::new(),
            media: self.lines.iter().map(|line| line.offer.clone()).collect(),
        })
    }

    /// Handles the client's answer. Rejected tracks are not sent.
    pub(crate) fn answered(&mut self) {
        if self.phase == Phase::Offered {
            self.phase = Phase::Answered;
        }
    }

    /// Starts playing, and returns a wait for the end. Returns `None` if it has started before.
    pub(crate) fn begin(
        &mut self,
        handle: &Handle,
        media: &MediaPlane,
    ) -> Option<impl Future<Output = Ended> + Send + use<>> {
        let mut playback = self.playback.take()?;
        let negotiated = handle.negotiated();
        let mut feeds = Vec::new();
        let mut ingests = Vec::new();
        let tracks = playback.tracks().to_vec();
        for (index, track) in tracks.iter().enumerate() {
            let line = self.lines.iter().find(|line| line.track == Some(index));
            let mid = line.and_then(|line| line.offer.mid);
            let has_red = takes_red(negotiated.as_ref(), mid);
            if track.red && !has_red {
                playback.take_redundancy_out(index);
            }
            let feed = match (mid, ingest(track, track.red && has_red)) {
                (Some(_), None) if track.medium == Medium::Data => data_feed(handle, track),
                (Some(mid), Some((options, feed))) => {
                    let id = media.add_ingest(options).id;
                    ingests.push(id);
                    handle.route_from(id, mid, RouteOptions::default());
                    feed
                }
                _ => Feed::Messages(Box::new(|_| {})),
            };
            feeds.push(feed);
        }
        let hold = self.what.hold().clone();
        let player = FilePlayer::start_held_by(hold, Box::new(playback), feeds, self.what.name());
        if let Some(position) = self.begins_at.take() {
            player.seek(position);
        }
        let ended = player.ended();
        self.feeding = Some(Feeding {
            player,
            ingests,
            media: media.clone(),
        });
        self.phase = Phase::Playing;
        Some(ended)
    }

    /// Seeks to `position`. Returns false if it has ended.
    pub(crate) fn seek(&mut self, position: Duration) -> bool {
        match &self.feeding {
            Some(feeding) => feeding.player.seek(position),
            None => {
                self.begins_at = Some(position);
                true
            }
        }
    }

    pub(crate) fn pause(&self, pause: bool) {
        self.what.hold().set(pause);
    }

    /// Returns the event before playing.
    pub(crate) fn preparing(&self, warning: Option<&str>) -> Value {
        self.what
            .status("preparing")
            .with_some("warning", warning)
            .with_some("duration", self.duration.map(millis))
            .into()
    }
}

/// Puts a track on an m-line of its kind.
fn offer_track(lines: &mut Vec<Line>, track: &PlayedTrack, index: usize) {
    let (kind, mid) = match track.medium {
        Medium::Audio => (Kind::Audio, "a"),
        Medium::Video => (Kind::Video, "v"),
        Medium::Data => (Kind::Data, "d"),
    };
    let place = lines.iter().position(|line| line.offer.kind == kind);
    let before = place.and_then(|place| lines.get(place));
    let before = before.map(|line| line.offer.codecs.clone());
    let mut offer = MediaOffer::new(kind, Direction::SendOnly);
    offer.mid = Mid::new(mid);
    match CodecName::from_name(&track.codec) {
        Some(codec) if kind != Kind::Data => {
            let fmtp = track.fmtp.clone();
            let fmtp = fmtp.or_else(|| (codec == CodecName::H264).then(|| H264_FMTP.to_owned()));
            let pt = match kind {
                // The static one, or Janus's for other codecs.
                Kind::Audio => codec.default_pt(),
                _ => video_pt(codec, before.as_deref().unwrap_or_default()),
            };
            offer.add_codec(codec, Some(pt), fmtp);
            if track.red {
                offer.add_red(RED_PT, AUDIO_PT);
            }
            let recorded = passed(track);
            let known = PASSED.into_iter();
            let known = known.filter(|(extension, _)| recorded.id(*extension).is_some());
            offer.extensions = vec![(ExtensionKind::Mid, MID)];
            offer.extensions.extend(known);
        }
        _ => offer.direction = Direction::SendRecv,
    }
    let line = Line {
        offer,
        track: Some(index),
    };
    match place.and_then(|place| lines.get_mut(place)) {
        Some(known) => *known = line,
        None => lines.push(line),
    }
}

/// Returns a payload type for video: always the same for a codec, and different for others.
fn video_pt(codec: CodecName, before: &[portunus_core::sdp::CodecSpec]) -> Pt {
    let [first, ..] = VIDEO_PTS;
    match before.first() {
        None => first,
        Some(last) if last.codec_name() == Some(codec) => last.pt,
        Some(last) => {
            let next = VIDEO_PTS.into_iter().skip_while(|pt| *pt != last.pt).nth(1);
            next.unwrap_or(first)
        }
    }
}

/// Returns the extensions of recorded packets that are passed on, with their ids in the recording.
fn passed(track: &PlayedTrack) -> ExtensionMap {
    let mut map = ExtensionMap::default();
    for (id, uri) in &track.extensions {
        let kind = ExtensionKind::from_uri(uri);
        let kind = kind.filter(|kind| PASSED.iter().any(|(passed, _)| passed == kind));
        if let Some(kind) = kind.filter(|_| (1..=14).contains(id)) {
            map.set(kind, *id);
        }
    }
    map
}

/// Whether the client accepts redundant audio on an m-line.
fn takes_red(negotiated: Option<&Negotiated>, mid: Option<Mid>) -> bool {
    let lines = negotiated.into_iter().flat_map(|it| &it.media);
    let mut lines = lines.filter(|line| Some(line.mid) == mid && !line.disabled);
    lines.any(|line| line.payloads.iter().any(|it| it.codec == Codec::Red))
}

/// Returns the ingest for a track, or `None` for messages.
fn ingest(track: &PlayedTrack, red: bool) -> Option<(IngestOptions, Feed)> {
    let rate = track.clock_rate?;
    let codec = CodecName::from_name(&track.codec)?;
    let codec = if red { Codec::Red } else { codec.codec() };
    let (feed, receiver) = packet_feed(1);
    let mut options = IngestOptions::rtp(codec, rate, IngestFeed::Packets(receiver));
    if let IngestMedia::Rtp(rtp) = &mut options.media {
        rtp.extensions = passed(track);
        rtp.opaque = track.encrypted;
    }
    Some((options, feed.into()))
}

/// Returns a feed that sends the messages of a track to the client.
fn data_feed(handle: &Handle, track: &PlayedTrack) -> Feed {
    let handle = handle.clone();
    let is_text = track.codec == "text";
    Feed::Messages(Box::new(move |message| {
        let payload = match std::str::from_utf8(message) {
            Ok(text) if is_text => DataPayload::Text(text.to_owned()),
            _ => DataPayload::Binary(message.to_vec()),
        };
        handle.send_data(DataMessage {
            label: DATA_CHANNEL.to_owned(),
            protocol: String::new(),
            payload,
        });
    }))
}
