//! Streams to URLs: RTP of the tracks to ffmpeg on this machine, which encodes and sends it.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use portunus_media::{ForwardOptions, MediaPlane, RouteId, RouteOptions};
use portunus_rtp::Pt;
use portunus_sdp::{CodecName, Kind};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::encoding::Encoding;
use super::source::SourceTrack;
use super::stream_url::StreamUrl;
use crate::ffmpeg::{Program, arguments};

/// How long the second of sound and picture is waited for.
const GATHERING: Duration = Duration::from_secs(2);

/// After which time a program that has failed counts as one that has worked.
const LASTING: Duration = Duration::from_secs(60);

/// When keyframes are asked for after the start, since ffmpeg needs a while to listen.
const KEYFRAMES: [Duration; 4] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// The longest wait before a program is started again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The payload types of sound and picture on the way to ffmpeg.
const AUDIO: Pt = Pt(111);
const VIDEO: Pt = Pt(96);

/// What streams need.
#[derive(Debug, Clone)]
pub(super) struct StreamMeans {
    pub(super) media: MediaPlane,
    pub(super) ffmpeg: String,
    pub(super) encoding: Encoding,
    pub(super) restarts: u32,
}

/// What streams send: one track of sound and one of pictures at most.
#[derive(Debug, Clone, Default)]
struct Wanted {
    tracks: Vec<SourceTrack>,
    is_stopped: bool,
}

impl Wanted {
    fn sids(&self) -> Vec<&str> {
        self.tracks.iter().map(|track| track.sid.as_str()).collect()
    }
}

/// A stream to a URL.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) url: StreamUrl,
    wanted: watch::Sender<Wanted>,
    task: Option<JoinHandle<Result<(), String>>>,
}

impl Stream {
    /// Starts a stream, which begins with the first tracks.
    pub(super) fn start(means: StreamMeans, url: StreamUrl) -> Self {
        let (wanted, wants) = watch::channel(Wanted::default());
        let task = tokio::spawn(run(means, url.clone(), wants));
        Stream {
            url,
            wanted,
            task: Some(task),
        }
    }

    /// Sends the first open tracks of sound and of pictures.
    pub(super) fn follow(&self, tracks: &[SourceTrack]) {
        let first = |kind| {
            let mut of_kind = tracks.iter().filter(move |it| it.kind == kind);
            of_kind.find(|it| it.spec.open).cloned()
        };
        let tracks = first(Kind::Audio).into_iter().chain(first(Kind::Video));
        let wanted = Wanted {
            tracks: tracks.collect(),
            is_stopped: false,
        };
        self.wanted.send_if_modified(|before| {
            let is_new = before.sids() != wanted.sids();
            *before = wanted;
            is_new
        });
    }

    /// Returns how it has ended, once.
    pub(super) async fn outcome(&mut self) -> Option<Result<(), String>> {
        let task = self.task.take_if(|task| task.is_finished())?;
        Some(joined(task).await)
    }

    /// Ends it. Returns how it has ended, unless that was returned before.
    pub(super) async fn stop(&mut self) -> Option<Result<(), String>> {
        self.wanted.send_modify(|wanted| wanted.is_stopped = true);
        Some(joined(self.task.take()?).await)
    }
}

async fn joined(task: JoinHandle<Result<(), String>>) -> Result<(), String> {
    let ended = task.await;
    ended.unwrap_or_else(|error| Err(error.to_string()))
}

/// Streams until it is stopped, or the program has failed too often.
async fn run(
    means: StreamMeans,
    url: StreamUrl,
    mut wants: watch::Receiver<Wanted>,
) -> Result<(), String> {
    let mut restarts = 0;
    loop {
        let mut wanted = wants.borrow_and_update().clone();
        if !wanted.is_stopped && wanted.tracks.len() == 1 {
            // The other one often follows. An error is a stop, which the next look finds.
            let _ = timeout(GATHERING, wants.changed()).await;
            wanted = wants.borrow_and_update().clone();
        }
        if wanted.is_stopped {
            return Ok(());
        }
        if wanted.tracks.is_empty() {
            if wants.changed().await.is_err() {
                return Ok(());
            }
            continue;
        }
        let started = Instant::now();
        let feed = Feed::new(&means.media, &wanted.tracks)?;
        let all = options(&url, &means.encoding, &wanted.tracks);
        let program = Program::start(&means.ffmpeg, all, Some(feed.description.clone())).await;
        let mut program = program.map_err(|error| error.to_string())?;
        let ended = tokio::select! {
            ended = program.ended() => Some(ended),
            _ = wants.changed() => None,
            () = feed.ask_keyframes() => None,
        };
        let Some(ended) = ended else {
            // Other tracks need another description.
            program.stop().await;
            continue;
        };
        let error = match ended {
            // The tracks are there, so the receiver has ended it.
            Ok(()) => "the stream has ended".to_owned(),
            Err(error) => url.hide_in(&error.to_string()),
        };
        if started.elapsed() >= LASTING {
            restarts = 0;
        }
        if restarts >= means.restarts {
            return Err(error);
        }
        let wait = Duration::from_secs(1 << restarts.min(4)).min(LONGEST_WAIT);
        restarts += 1;
        tracing::warn!(
            url = url.shown(),
            restarts,
            "a stream is started again: {error}"
        );
        // A stop is found at once.
        let _ = timeout(wait, wants.changed()).await;
    }
}

/// RTP of tracks to ports of this machine. It ends when it is dropped.
#[derive(Debug)]
struct Feed {
    media: MediaPlane,
    routes: Vec<RouteId>,
    /// The description for ffmpeg.
    description: String,
}

impl Feed {
    fn new(media: &MediaPlane, tracks: &[SourceTrack]) -> Result<Self, String> {
        let mut feed = Feed {
            media: media.clone(),
            routes: Vec::new(),
            description:
                "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
                    .to_owned(),
        };
        for track in tracks {
            let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
            let lines = media_lines(track.codec, port)?;
            feed.description.push_str(&lines);
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let forward = ForwardOptions {
                pt: Some(match track.kind {
                    Kind::Video => VIDEO,
                    Kind::Audio | Kind::Data => AUDIO,
                }),
                ..ForwardOptions::new(to)
            };
            let route = media.forward(track.spec.from, RouteOptions::default(), forward);
            feed.routes.push(route);
        }
        Ok(feed)
    }

    /// Asks for keyframes for a while. Never returns.
    async fn ask_keyframes(&self) {
        for wait in KEYFRAMES {
            sleep(wait).await;
            for route in &self.routes {
                self.media.request_outlet_keyframe(*route);
            }
        }
        std::future::pending().await
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        for route in &self.routes {
            self.media.remove_route(*route);
        }
    }
}

/// Returns an even port that is free, as is the next one. ffmpeg takes both.
fn free_port() -> std::io::Result<u16> {
    const ATTEMPTS: usize = 100;
    let bind = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
    for _ in 0..ATTEMPTS {
        let socket = bind(0)?;
        let port = socket.local_addr()?.port();
        if port.is_multiple_of(2) && port.checked_add(1).is_some_and(|next| bind(next).is_ok()) {
            return Ok(port);
        }
    }
    Err(std::io::ErrorKind::AddrInUse.into())
}

/// Describes a track (RFC 8866).
fn media_lines(codec: CodecName, port: u16) -> Result<String, String> {
    let (kind, pt, map, format) = match codec {
        CodecName::Opus => ("audio", AUDIO, "opus/48000/2", None),
        CodecName::Pcmu => ("audio", AUDIO, "PCMU/8000", None),
        CodecName::Pcma => ("audio", AUDIO, "PCMA/8000", None),
        CodecName::Vp8 => ("video", VIDEO, "VP8/90000", None),
        CodecName::Vp9 => ("video", VIDEO, "VP9/90000", None),
        CodecName::H264 => ("video", VIDEO, "H264/90000", Some("packetization-mode=1")),
        CodecName::H265 => ("video", VIDEO, "H265/90000", None),
        other => return Err(format!("{} cannot be streamed", other.name())),
    };
    let Pt(pt) = pt;
    let mut lines = format!("m={kind} {port} RTP/AVP {pt}\r\na=rtpmap:{pt} {map}\r\n");
    if let Some(format) = format {
        lines.push_str(&format!("a=fmtp:{pt} {format}\r\n"));
    }
    Ok(lines)
}

/// Returns the options of ffmpeg.
fn options(
    url: &StreamUrl,
    encoding: &Encoding,
    tracks: &[SourceTrack],
) -> Vec<std::ffi::OsString> {
    let Encoding {
        width,
        height,
        fps,
        video_kbps,
        audio_kbps,
        ..
    } = encoding;
    let has = |kind| tracks.iter().any(|track| track.kind == kind);
    let mut all = arguments([
        "-hide_banner",
        "-v",
        "error",
        "-protocol_whitelist",
        "pipe,udp,rtp",
        // The clocks of sound and picture differ, and both come as they are sent.
        "-use_wallclock_as_timestamps",
        "1",
        "-f",
        "sdp",
        "-i",
        "pipe:0",
    ]);
    if has(Kind::Video) {
        let filter = format!(
            "scale={width}:{height}:force_original_aspect_ratio=decrease,pad={width}:{height}:(ow-iw)/2:(oh-ih)/2,setsar=1,fps={fps}"
        );
        let (rate, buffer) = (format!("{video_kbps}k"), format!("{}k", video_kbps * 2));
        let interval = encoding.keyframe_interval().to_string();
        all.extend(arguments([
            "-map",
            "0:v:0",
            "-vf",
            &filter,
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
            "-tune",
            "zerolatency",
            "-profile:v",
            "main",
            "-pix_fmt",
            "yuv420p",
            "-b:v",
            &rate,
            "-maxrate",
            &rate,
            "-bufsize",
            &buffer,
            "-g",
            &interval,
        ]));
    }
    if has(Kind::Audio) {
        let rate = format!("{audio_kbps}k");
        all.extend(arguments([
            "-map",
            "0:a:0",
            "-af",
            "aresample=async=1000",
            "-c:a",
            "aac",
            "-b:a",
            &rate,
            "-ar",
            "48000",
            "-ac",
            "2",
        ]));
    }
    all.extend(arguments(["-f", url.format(), url.url()]));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_described_for_ffmpeg() {
        assert_eq!(
            media_lines(CodecName::H264, 5004),
            Ok("m=video 5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n".to_owned())
        );
        let text = "AV1 cannot be streamed".to_lowercase();
        let refused = media_lines(CodecName::Av1, 5004).map_err(|it| it.to_lowercase());
        assert_eq!(refused, Err(text));
    }
}
