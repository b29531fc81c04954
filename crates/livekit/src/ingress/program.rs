//! Media by ffmpeg: from a URL, or by RTMP. It encodes, and sends RTP to ports of this machine.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use livekit_protocol::ingress_state::Status;
use livekit_protocol::{IngressInfo, IngressInput, TrackInfo, TrackSource, participant_info};
use portunus_media::ingest::IngestStatus;
use portunus_media::{
    IngestBind, IngestFeed, IngestId, IngestOptions, IngestSocket, KeyframeCache, MediaPlane,
};
use portunus_sdp::CodecName;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::{Ingresses, Means};
use crate::ffmpeg::{Program, arguments};
use crate::guest::{Guest, GuestNews, GuestProfile, GuestTrack};

/// How long the first packet from a URL may take.
const FIRST_PACKET: Duration = Duration::from_secs(60);

/// How long the second of sound and picture is waited for.
const GATHERING: Duration = Duration::from_secs(1);

/// How often packets are looked for.
const CHECKING: Duration = Duration::from_millis(50);

/// The first wait before RTMP is taken again after a fault, which doubles, and the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Seconds between keyframes.
const KEYFRAMES: &str = "expr:gte(t,n_forced*1)";

/// The protocols that a URL may lead to.
const PROTOCOLS: &str = "http,https,tcp,tls,udp,rtp,rtmp,rtmps,srt,crypto,hls";

/// An ingress whose media a program gets.
#[derive(Debug)]
pub(super) struct Feeder {
    pub(super) ingresses: Ingresses,
    pub(super) means: Means,
    pub(super) info: IngressInfo,
    /// The port for RTMP.
    pub(super) port: Option<u16>,
}

/// Why media has ended.
#[derive(Debug)]
enum Ended {
    /// The ingress is removed or changed.
    Stopped,
    /// The source has ended, or the participant was removed.
    Complete,
    /// It has failed.
    Failed(String),
}

/// Ports for sound and picture, and their sources. They end when this is dropped.
#[derive(Debug)]
struct Inputs {
    media: MediaPlane,
    audio: Input,
    video: Input,
}

#[derive(Debug)]
struct Input {
    port: u16,
    ingest: IngestId,
    status: Arc<IngestStatus>,
}

impl Feeder {
    /// Serves the ingress until it is removed, or a URL has ended.
    pub(super) async fn run(self, mut running: watch::Receiver<()>) {
        let id = &self.info.ingress_id;
        let is_url = self.info.input_type() == IngressInput::UrlInput;
        let mut wait = FIRST_WAIT;
        loop {
            let mut resource = String::new();
            let ended = tokio::select! {
                ended = self.feed(&mut resource) => ended,
                _ = running.changed() => Ended::Stopped,
            };
            let is_stopped = matches!(ended, Ended::Stopped);
            let (status, error) = match ended {
                Ended::Complete if is_url => (Status::EndpointComplete, String::new()),
                Ended::Stopped | Ended::Complete => (Status::EndpointInactive, String::new()),
                Ended::Failed(error) => {
                    tracing::warn!(ingress = id, "an ingress has failed: {error}");
                    (Status::EndpointError, error)
                }
            };
            if !resource.is_empty() {
                wait = FIRST_WAIT;
            }
            if status == Status::EndpointComplete {
                self.ingresses.keep_complete(id);
            }
            self.ingresses.ends(id, &resource, status, error);
            if is_url || is_stopped {
                return;
            }
            tokio::select! {
                () = sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
                _ = running.changed() => return,
            }
        }
    }

    /// Takes media once.
    async fn feed(&self, resource: &mut String) -> Ended {
        let is_url = self.info.input_type() == IngressInput::UrlInput;
        let inputs = match Inputs::open(&self.means.media) {
            Ok(inputs) => inputs,
            Err(error) => return Ended::Failed(error),
        };
        if is_url {
            *resource = self.ingresses.begins(&self.info.ingress_id);
        }
        let options = self.options(&inputs);
        let program = Program::start(&self.means.ffmpeg, options, None).await;
        let mut program = match program {
            Ok(program) => program,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        let came = tokio::select! {
            came = inputs.first_packet(is_url) => came,
            ended = program.ended() => {
                return match ended {
                    // Somebody came by RTMP and sent nothing, or had another key.
                    _ if !is_url => Ended::Complete,
                    Ok(()) => Ended::Failed("there is neither sound nor picture".to_owned()),
                    Err(error) => Ended::Failed(self.hide_in(&error.to_string())),
                };
            }
        };
        if !came {
            return Ended::Failed("there is neither sound nor picture".to_owned());
        }
        if !is_url {
            *resource = self.ingresses.begins(&self.info.ingress_id);
        }
        let entered = self.enter(&inputs, resource);
        let (guest, news) = match entered {
            Ok(entered) => entered,
            Err(error) => return Ended::Failed(error),
        };
        tokio::select! {
            ended = program.ended() => match ended {
                Ok(()) => Ended::Complete,
                Err(error) if is_url => Ended::Failed(self.hide_in(&error.to_string())),
                // A sender that goes without a word is no fault.
                Err(_) => Ended::Complete,
            },
            () = out(news) => {
                drop(guest);
                program.stop().await;
                Ended::Complete
            }
        }
    }

    /// Enters the room with what comes.
    fn enter(
        &self,
        inputs: &Inputs,
        resource: &str,
    ) -> Result<(Guest, mpsc::Receiver<GuestNews>), String> {
        let hall = self.means.halls.open(&self.info.room_name, None)?;
        let profile = GuestProfile {
            identity: self.info.participant_identity.clone(),
            name: self.info.participant_name.clone(),
            metadata: self.info.participant_metadata.clone(),
            attributes: Default::default(),
            kind: participant_info::Kind::Ingress,
        };
        let entered = Guest::enter(&hall, &self.means.media, profile);
        let (guest, news) = entered.map_err(|refusal| refusal.to_string())?;
        let tracks = self.tracks(inputs);
        let published = guest.publish(&tracks);
        published.map_err(|refusal| refusal.to_string())?;
        let id = &self.info.ingress_id;
        self.ingresses.publishes(id, resource, &hall, infos(&guest));
        Ok((guest, news))
    }

    fn tracks(&self, inputs: &Inputs) -> Vec<GuestTrack> {
        let mut tracks = Vec::new();
        if inputs.audio.status.packets() > 0 {
            let (name, source) = audio_of(&self.info);
            tracks.push(GuestTrack {
                codec: CodecName::Opus,
                source,
                name,
                ingest: inputs.audio.ingest,
            });
        }
        if inputs.video.status.packets() > 0 {
            let (name, source) = video_of(&self.info);
            tracks.push(GuestTrack {
                codec: CodecName::H264,
                source,
                name,
                ingest: inputs.video.ingest,
            });
        }
        tracks
    }

    /// Returns the options of ffmpeg.
    fn options(&self, inputs: &Inputs) -> Vec<OsString> {
        let mut all = arguments(["-hide_banner", "-v", "error", "-nostdin"]);
        match self.port {
            Some(port) => {
                let url = format!("rtmp://0.0.0.0:{port}/live/{}", self.info.stream_key);
                all.extend(arguments(["-listen", "1", "-i", &url]));
            }
            None => {
                let url = &self.info.url;
                all.extend(arguments(["-protocol_whitelist", PROTOCOLS]));
                if url.starts_with("http") {
                    // Files would come faster than they are played.
                    all.extend(arguments(["-re"]));
                }
                if url.starts_with("rtsp") {
                    all.extend(arguments(["-rtsp_transport", "tcp"]));
                }
                all.extend(arguments(["-i", url]));
            }
        }
        let to = |input: &Input, kind| {
            let port = input.port;
            format!("[select={kind}:f=rtp:onfail=ignore]rtp://127.0.0.1:{port}?pkt_size=1200")
        };
        let outputs = format!("{}|{}", to(&inputs.video, "v"), to(&inputs.audio, "a"));
        all.extend(arguments([
            "-map",
            "0:v:0?",
            "-map",
            "0:a:0?",
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
            "-tune",
            "zerolatency",
            "-profile:v",
            "baseline",
            "-pix_fmt",
            "yuv420p",
            "-vf",
            "scale=trunc(iw/2)*2:trunc(ih/2)*2",
            "-b:v",
            "3000k",
            "-maxrate",
            "3000k",
            "-bufsize",
            "3000k",
            "-force_key_frames",
            KEYFRAMES,
            "-c:a",
            "libopus",
            "-b:a",
            "96k",
            "-ar",
            "48000",
            "-ac",
            "2",
            "-f",
            "tee",
            &outputs,
        ]));
        all
    }

    /// Returns a text without the stream key.
    fn hide_in(&self, text: &str) -> String {
        match self.info.stream_key.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.info.stream_key, "…"),
        }
    }
}

/// Waits until a guest is out of the room.
async fn out(mut news: mpsc::Receiver<GuestNews>) {
    while let Some(news) = news.recv().await {
        if matches!(news, GuestNews::Out(_)) {
            return;
        }
    }
    std::future::pending().await
}

/// Returns the descriptions of a guest's tracks.
pub(super) fn infos(guest: &Guest) -> Vec<TrackInfo> {
    let hall = guest.hall();
    let state = hall.room.lock();
    let info = hall.people().info(&state, guest.id());
    info.map(|info| info.tracks).unwrap_or_default()
}

/// Returns the name and the source of the sound of an ingress.
pub(super) fn audio_of(info: &IngressInfo) -> (String, TrackSource) {
    let audio = info.audio.as_ref();
    let source = audio.map_or(TrackSource::Unknown, |audio| audio.source());
    let name = audio.map(|audio| audio.name.clone()).unwrap_or_default();
    match source {
        TrackSource::Unknown => (name, TrackSource::Microphone),
        source => (name, source),
    }
}

/// Returns the name and the source of the picture of an ingress.
pub(super) fn video_of(info: &IngressInfo) -> (String, TrackSource) {
    let video = info.video.as_ref();
    let source = video.map_or(TrackSource::Unknown, |video| video.source());
    let name = video.map(|video| video.name.clone()).unwrap_or_default();
    match source {
        TrackSource::Unknown => (name, TrackSource::Camera),
        source => (name, source),
    }
}

impl Inputs {
    fn open(media: &MediaPlane) -> Result<Self, String> {
        let open = |codec: CodecName| {
            let bind = IngestBind {
                interface: Some(Ipv4Addr::LOCALHOST.to_string()),
                ..IngestBind::new(0)
            };
            let socket = IngestSocket::bind(bind).map_err(|error| error.to_string())?;
            let port = socket.local().port();
            let feed = IngestFeed::socket(socket);
            let options = IngestOptions::rtp(codec.codec(), codec.clock_rate(), feed);
            let ingest = media.add_ingest(options);
            Ok::<_, String>(Input {
                port,
                ingest: ingest.id,
                status: ingest.status,
            })
        };
        let audio = open(CodecName::Opus)?;
        let video = open(CodecName::H264);
        let video = video.inspect_err(|_| drop(media.remove_ingest(audio.ingest)))?;
        // ffmpeg takes no requests for keyframes.
        let cache = KeyframeCache {
            max_age: Duration::from_secs(3),
            max_bytes: 4 << 20,
        };
        media.keep_keyframe(video.ingest, Some(cache));
        Ok(Inputs {
            media: media.clone(),
            audio,
            video,
        })
    }

    fn count(&self) -> usize {
        let inputs = [&self.audio, &self.video];
        inputs.iter().filter(|it| it.status.packets() > 0).count()
    }

    /// Waits for the first packet, and a moment for one of the other kind. Returns whether there is
    /// one. `limited` bounds the time.
    async fn first_packet(&self, limited: bool) -> bool {
        let first = async {
            while self.count() == 0 {
                sleep(CHECKING).await;
            }
        };
        if !limited {
            first.await;
        } else if timeout(FIRST_PACKET, first).await.is_err() {
            return false;
        }
        let until = Instant::now() + GATHERING;
        while self.count() < 2 && Instant::now() < until {
            sleep(CHECKING).await;
        }
        true
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        for input in [&self.audio, &self.video] {
            // Nobody waits for their ends.
            let _ = self.media.remove_ingest(input.ingest);
        }
    }
}
