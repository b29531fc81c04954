//! Publishing to a mountpoint of type `whip`: `publish`, `unpublish`.

use std::sync::Arc;

use portunus_core::media::SourceRef;
use portunus_core::sdp::{
    AnswerOptions, CodecName, CodecSpec, Description, Direction, Kind, Media,
};
use portunus_core::{
    ExtensionKind, FieldError, Fields, Jsep, JsepKind, Message, Mid, equal_in_constant_time,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::{Answer, Session, Viewer};
use crate::mountpoint::{Age, Client, Mountpoint, Published, Stream};
use crate::refusal::Refusal;
use crate::spec::{SourceSpec, StreamCodec};

const ANOTHER_PUBLISHES: Refusal = Refusal::State("Somebody else publishes to the mountpoint");

/// A handle that publishes.
pub(super) struct Publishing {
    pub(super) mountpoint: Arc<Mountpoint>,
    lines: Vec<Line>,
}

/// An m-line that is a stream.
#[derive(Clone, Copy)]
struct Line {
    mid: Mid,
    stream: usize,
    /// The encodings that come in, a bit for each.
    receiving: u8,
}

impl Publishing {
    /// Notes that an encoding comes or pauses. The stream is silent once all pause.
    pub(super) fn receive(&mut self, mid: Mid, encoding: u8, receiving: bool) {
        let Some(line) = self.lines.iter_mut().find(|line| line.mid == mid) else {
            return;
        };
        let bit = 1u8.checked_shl(encoding.into()).unwrap_or(0);
        let before = line.receiving;
        line.receiving = if receiving {
            before | bit
        } else {
            before & !bit
        };
        let Some(stream) = self.mountpoint.streams.get(line.stream) else {
            return;
        };
        match (before, line.receiving) {
            (_, 1..) => stream.live().age = Age::Now,
            (1.., 0) => stream.live().age = Age::Since(Instant::now()),
            (0, 0) => {}
        }
    }
}

impl Viewer {
    pub(super) fn publish(self: &Arc<Self>, message: &Message) -> Result<Answer, Refusal> {
        let fields = Fields(&message.body);
        let mountpoint = self.shared.mountpoints.named(fields)?;
        check_publisher(fields, &mountpoint)?;
        let jsep = message.jsep.as_ref().filter(|j| j.kind == JsepKind::Offer);
        let jsep = jsep.ok_or_else(|| Refusal::Sdp("A publish goes with an offer".to_owned()))?;
        let former = match &*self.session() {
            Session::Watching(_) => return Err(Refusal::State("This handle watches")),
            Session::Publishing(former) if !Arc::ptr_eq(&former.mountpoint, &mountpoint) => {
                return Err(Refusal::State("Already publishing to another mountpoint"));
            }
            Session::Publishing(former) => Some(former.lines.clone()),
            Session::Idle => None,
        };
        let again = former.is_some();
        // A former publisher is replaced only by a usable offer.
        let (answer, taken) = answer(&mountpoint, &jsep.description)?;
        // The publisher's place comes first: a refused client has no PeerConnection yet, whose end
        // it would hear of before the refusal.
        let client: Arc<dyn Client> = self.clone();
        if !mountpoint.take_publisher(&client) {
            return Err(match mountpoint.is_over() {
                true => Refusal::NoSuchMountpoint(mountpoint.id.clone()),
                false => ANOTHER_PUBLISHES,
            });
        }
        let local = self.handle.answer(answer).inspect_err(|_| {
            if !again {
                mountpoint.unpublish(self.id);
            }
        })?;
        let publishing = self.published_by(&mountpoint, jsep, taken, &former.unwrap_or_default());
        self.begin_publishing(publishing)?;
        if again {
            mountpoint.connect_viewers();
        }
        self.notify("publishing", &mountpoint);
        let local = local.with_e2ee(mountpoint.is_e2ee());
        Ok((json!({ "status": "publishing" }), Some(local)))
    }

    /// Starts to publish, unless the mountpoint has ended meanwhile without telling this handle.
    fn begin_publishing(&self, publishing: Publishing) -> Result<(), Refusal> {
        let mountpoint = publishing.mountpoint.clone();
        *self.session() = Session::Publishing(publishing);
        if mountpoint.has_publisher(self.id) {
            return Ok(());
        }
        self.leave();
        self.end(None);
        Err(Refusal::NoSuchMountpoint(mountpoint.id.clone()))
    }

    /// Stops publishing. The PeerConnection is closed after the answer.
    pub(super) fn unpublish(&self) -> Result<Answer, Refusal> {
        if !matches!(&*self.session(), Session::Publishing(_)) {
            return Err(Refusal::State("Not publishing"));
        }
        self.leave();
        Ok((json!({ "status": "unpublished" }), None))
    }

    /// Makes the negotiated m-lines the mountpoint's sources.
    fn published_by(
        &self,
        mountpoint: &Arc<Mountpoint>,
        jsep: &Jsep,
        taken: Vec<Taken>,
        former: &[Line],
    ) -> Publishing {
        let sends = |stream: usize, source: SourceRef| {
            let of_stream = taken.iter().find(|taken| taken.stream == stream);
            of_stream.and_then(|taken| self.handle.track(taken.line)) == source.track()
        };
        mountpoint.forget_sources(sends);
        if mountpoint.is_e2ee() {
            self.handle.set_opaque();
        }
        let negotiated = self.handle.negotiated();
        let extensions = |mid: Mid| {
            let media = negotiated.as_ref().map(|it| it.media.as_slice());
            let line = media.unwrap_or_default().iter().find(|it| it.mid == mid);
            line.map(|line| line.extensions).unwrap_or_default()
        };
        let mut lines = Vec::with_capacity(taken.len());
        for Taken {
            line,
            stream,
            codec,
        } in taken
        {
            let source = self.handle.track(line);
            let simulcast = jsep.simulcast.iter().any(|simulcast| simulcast.mid == line);
            let svc = jsep.svc.iter().any(|svc| svc.mid == line);
            let published = Published {
                codec,
                source,
                simulcast,
                svc,
                extensions: extensions(line),
            };
            mountpoint.set_published(stream, published);
            // An encoding that continues is not announced again.
            let same = |known: &&Line| (known.mid, known.stream) == (line, stream);
            let receiving = former.iter().find(same).map_or(0, |known| known.receiving);
            lines.push(Line {
                mid: line,
                stream,
                receiving: if simulcast { receiving } else { receiving & 1 },
            });
        }
        Publishing {
            mountpoint: mountpoint.clone(),
            lines,
        }
    }
}

/// The credentials of a publisher.
#[derive(Deserialize)]
struct Shown<'a> {
    token: Option<&'a str>,
    secret: Option<&'a str>,
}

/// Checks the mountpoint's token or secret. Without either, anybody may publish.
fn check_publisher(fields: Fields<'_>, mountpoint: &Mountpoint) -> Result<(), Refusal> {
    mountpoint.check_home()?;
    let SourceSpec::Whip(whip) = &mountpoint.spec.source else {
        let reason = format!("The mountpoint {} is not of type whip", mountpoint.id);
        return Err(Refusal::Invalid(reason));
    };
    let secret = mountpoint.details().access.secret.clone();
    let shown: Shown<'_> = fields.read()?;
    if whip.token.is_none() && secret.is_none() {
        return Ok(());
    }
    let right = |known: Option<&str>, shown: Option<&str>| {
        known
            .zip(shown)
            .is_some_and(|(known, shown)| equal_in_constant_time(known, shown))
    };
    // A client of WHIP has only a token, which may be the secret.
    let secret = secret.as_deref();
    let by_secret = right(secret, shown.secret) || right(secret, shown.token);
    if by_secret || right(whip.token.as_deref(), shown.token) {
        return Ok(());
    }
    match (shown.token, shown.secret) {
        (None, None) => Err(FieldError::Missing("token".to_owned()).into()),
        _ => Err(Refusal::Unauthorized("token")),
    }
}

/// An m-line that became a stream's source.
struct Taken {
    line: Mid,
    stream: usize,
    codec: CodecSpec,
}

/// Answers an offer: its m-lines become the mountpoint's streams in their order, by kind and codec.
fn answer(
    mountpoint: &Mountpoint,
    offer: &Description,
) -> Result<(Description, Vec<Taken>), Refusal> {
    let mut taken: Vec<Taken> = Vec::new();
    let mut media = Vec::with_capacity(offer.media.len());
    for offered in &offer.media {
        let is_free = |index: usize| taken.iter().all(|taken| taken.stream != index);
        let matched = mountpoint
            .streams
            .iter()
            .enumerate()
            .filter(|(index, stream)| Kind::from(stream.kind()) == offered.kind && is_free(*index))
            .find_map(|(index, stream)| Some((index, answer_line(offered, stream)?)));
        let found = matched.and_then(|(stream, line)| {
            let codec = line.codecs.first().cloned()?;
            Some((
                Taken {
                    line: offered.mid,
                    stream,
                    codec,
                },
                line,
            ))
        });
        match found {
            Some((stream, line)) => {
                taken.push(stream);
                media.push(line);
            }
            None => media.push(offered.refused()),
        }
    }
    if taken.is_empty() {
        let reason = "The offer has nothing that the mountpoint takes";
        return Err(Refusal::Invalid(reason.to_owned()));
    }
    let answer = Description {
        origin: offer.origin.clone(),
        name: format!("Mountpoint {}", mountpoint.id),
        attributes: Vec::new(),
        media,
    };
    Ok((answer, taken))
}

/// Answers an m-line that sends, with the stream's codec, or else the first known one of the offer.
fn answer_line(offered: &Media, stream: &Stream) -> Option<Media> {
    if offered.rejected || !offered.direction.sends() {
        return None;
    }
    let codecs: Vec<CodecName> = match stream.spec.codec {
        Some(StreamCodec::Plain(codec)) => vec![codec],
        Some(StreamCodec::Red) => return None,
        None => offered
            .codecs
            .iter()
            .filter_map(CodecSpec::codec_name)
            .collect(),
    };
    let mut options = AnswerOptions {
        extensions: ExtensionKind::ALL.to_vec(),
        ..AnswerOptions::default()
    };
    for media in [&mut options.audio, &mut options.video] {
        media.codecs.clone_from(&codecs);
        media.direction = Direction::RecvOnly;
    }
    let mut flags = Description::default();
    flags.media.push(offered.clone());
    options.audio.fmtp = flags.opus_flags().fmtp();
    let answer = Description::answer(&flags, &options);
    answer.media.into_iter().find(|media| !media.rejected)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use std::sync::Mutex;
    use std::time::Duration;

    use portunus_core::record::Recorder;
    use portunus_core::testing::{Line, TestClient, TestServer, jsep};
    use portunus_core::{CoreConfig, Handle, Plugin, PluginHandle, PluginInfo};
    use portunus_resources::{Id, Maker};

    use super::*;
    use crate::viewer::ViewerHandle;
    use crate::{Request, Streaming, StreamingConfig};

    /// The plugin, with access to its handles.
    struct Open {
        plugin: Streaming,
        viewers: Mutex<Vec<Arc<Viewer>>>,
    }

    impl Plugin for Open {
        fn info(&self) -> PluginInfo {
            self.plugin.info()
        }

        fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
            let attached = ViewerHandle::new(handle, self.plugin.shared.clone());
            self.viewers.lock().unwrap().push(attached.0.clone());
            Box::new(attached)
        }
    }

    /// A server with a mountpoint that a client can publish to.
    struct World {
        server: TestServer,
        open: Arc<Open>,
        mountpoint: Arc<Mountpoint>,
        /// The first handle.
        client: TestClient,
    }

    const ID: Id = Id::Number(7);

    impl World {
        async fn new() -> Self {
            let mut made = None;
            let server = TestServer::with_media(CoreConfig::default(), async |media| {
                let config = StreamingConfig::default();
                let plugin = Streaming::start(config, media, Recorder::default()).await;
                let open = Arc::new(Open {
                    plugin: plugin.unwrap(),
                    viewers: Mutex::default(),
                });
                made = Some(open.clone());
                vec![open as Arc<dyn Plugin>]
            })
            .await;
            let open = made.unwrap();
            let mut client = server.attach("janus.plugin.streaming").await;
            let create = json!({
                "request": "create", "type": "whip", "id": 7,
                "media": [{ "type": "audio", "mid": "a", "codec": "opus" }],
            });
            assert_eq!(client.request(create).await["streaming"], "created");
            let mountpoint = open.plugin.shared.mountpoints.get(&ID).unwrap();
            Self {
                server,
                open,
                mountpoint,
                client,
            }
        }

        /// Returns the n-th attached handle.
        fn viewer(&self, n: usize) -> Arc<Viewer> {
            self.open.viewers.lock().unwrap()[n].clone()
        }

        async fn destroy(&mut self) {
            let destroy = json!({ "request": "destroy", "id": 7 });
            let destroyed = self.client.request(destroy).await;
            assert_eq!(destroyed["streaming"], "destroyed");
        }
    }

    fn until(is_so: impl Fn() -> bool) {
        let patience = std::time::Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(std::time::Instant::now() < patience);
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_mountpoint_that_ends_meanwhile_gets_no_publisher() {
        let mut world = World::new().await;
        let viewer = world.viewer(0);
        assert!(world.mountpoint.take_publisher(&(viewer.clone() as _)));
        world.destroy().await;
        let publishing = Publishing {
            mountpoint: world.mountpoint.clone(),
            lines: Vec::new(),
        };
        let refused = viewer.begin_publishing(publishing).unwrap_err();
        assert_eq!(refused, Refusal::NoSuchMountpoint(ID));
        assert!(matches!(&*viewer.session(), Session::Idle));
        assert!(!world.mountpoint.is_published());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn who_publishes_to_a_mountpoint_that_ends_meanwhile_is_told_so_before_anything_ends() {
        let world = World::new().await;
        let mut watcher = world.server.attach("janus.plugin.streaming").await;
        let watch = json!({ "request": "watch", "id": 7 });
        watcher.message(watch, None).await;
        assert_eq!(watcher.event().await["result"]["status"], "preparing");
        let mut publisher = world.server.attach("janus.plugin.streaming").await;
        let (watching, publishing) = (world.viewer(1), world.viewer(2));
        let watchers = world.server.peers().len();

        // Both wait for the watcher's lock.
        let held = watching.session();
        let mountpoint = world.mountpoint.clone();
        let published = tokio::spawn(async move {
            let offer = jsep("offer", "abcd", &[Line::Audio]);
            let publish = json!({ "request": "publish", "id": 7 });
            publisher.message(publish, Some(offer)).await;
            (publisher.event().await, publisher.next().await)
        });
        let server = world.server;
        let has_come =
            || mountpoint.has_publisher(publishing.id) && server.peers().len() > watchers;
        until(has_come);
        let mut client = world.client;
        let destroyed = tokio::spawn(async move {
            client
                .request(json!({ "request": "destroy", "id": 7 }))
                .await
        });
        until(|| mountpoint.is_over());
        drop(held);
        destroyed.await.unwrap();
        let (event, next) = published.await.unwrap();
        assert_eq!(event["error_code"], 455, "{event}");
        assert_eq!(next["janus"], "hangup");
        assert!(server.peers().is_empty());
    }

    #[tokio::test]
    async fn an_end_is_told_after_the_answer_of_the_request_that_is_under_way() {
        let mut world = World::new().await;
        let mut watcher = world.server.attach("janus.plugin.streaming").await;
        let watch = json!({ "request": "watch", "id": 7 });
        watcher.message(watch, None).await;
        assert_eq!(watcher.event().await["result"]["status"], "preparing");
        let viewer = world.viewer(1);
        viewer.begin_answer();
        world.destroy().await;
        watcher.expect_silence().await;
        viewer.respond(
            "t",
            Ok((Request::Configure, (json!({ "event": "configured" }), None))),
        );
        assert_eq!(watcher.event().await["result"]["event"], "configured");
        assert_eq!(watcher.event().await["result"]["status"], "stopped");
        assert_eq!(watcher.next().await["janus"], "hangup");
    }

    #[tokio::test]
    async fn a_mountpoint_that_has_ended_is_none() {
        let mut world = World::new().await;
        world.destroy().await;
        // It was found before.
        let found = world
            .open
            .plugin
            .shared
            .mountpoints
            .reserve(Some(ID), Maker::Operator);
        found.unwrap().keep(world.mountpoint.clone());
        let publish = json!({ "request": "publish", "id": 7 });
        let offer = jsep("offer", "abcd", &[Line::Audio]);
        world.client.message(publish, Some(offer)).await;
        assert_eq!(world.client.event().await["error_code"], 455);
    }
}
