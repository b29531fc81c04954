//! Calls of the echo test with PeerConnections of our own.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::json;

use crate::http::Http;

/// A call of an attacker.
pub struct Call {
    pub peer: Peer,
    /// The server's answer.
    pub answer: String,
    /// The caller's offer.
    pub offer: String,
    http: Option<Http>,
    session: String,
}

/// Returns an offer of audio and video.
pub fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    let mut video = MediaOffer::new(Kind::Video, Direction::SendRecv);
    video.add_codec(CodecName::Vp8, None, None);
    Description::offer(OfferOptions {
        media: vec![audio, video],
        ..Default::default()
    })
}

impl Call {
    /// Negotiates without connecting. Returns `None` if the server refuses.
    pub async fn negotiate(from: Ipv4Addr, server: SocketAddr) -> Option<Self> {
        let mut http = Http::connect(from, server).await.ok()?;
        let session = http.session().await.ok()??;
        let handle = http.attach(&session).await.ok()??;
        let mut peer = Peer::offering_from(from.into()).await;
        let offer = peer.offer(description());
        let answer = http.offer(&handle, &offer).await.ok()??;
        peer.accept(&answer);
        Some(Call {
            peer,
            answer,
            offer,
            http: Some(http),
            session,
        })
    }

    /// Returns a connected call.
    pub async fn connect(from: Ipv4Addr, server: SocketAddr) -> Self {
        let mut call = Self::negotiate(from, server).await.expect("a call");
        call.peer.connect().await;
        call.keep();
        call
    }

    /// Keeps the call's session from now on.
    fn keep(&mut self) {
        let (http, session) = (self.http.take(), self.session.clone());
        tokio::spawn(async move {
            let keep = json!({ "janus": "keepalive", "transaction": "k" });
            let mut http = http.unwrap();
            while http.post(&session, &keep).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Returns user name and password of the caller's connectivity checks.
    pub fn ice(&self) -> (String, String) {
        let ufrag = |sdp: &str| value(sdp, "a=ice-ufrag:").to_owned();
        let name = format!("{}:{}", ufrag(&self.answer), ufrag(&self.offer));
        (name, value(&self.answer, "a=ice-pwd:").to_owned())
    }

    /// Returns the server's media address of this call.
    pub fn media(&self) -> SocketAddr {
        let candidate = value(&self.answer, "a=candidate:");
        let fields: Vec<_> = candidate.split(' ').collect();
        SocketAddr::new(fields[4].parse().unwrap(), fields[5].parse().unwrap())
    }

    /// Returns the SSRCs by which the server sends.
    pub fn ssrcs(&self) -> Vec<u32> {
        let lines = self.answer.lines();
        let ssrcs = lines.filter_map(|line| line.strip_prefix("a=ssrc:")?.split(' ').next());
        ssrcs.filter_map(|ssrc| ssrc.parse().ok()).collect()
    }
}

fn value<'s>(sdp: &'s str, name: &str) -> &'s str {
    let mut lines = sdp.lines();
    lines.find_map(|line| line.strip_prefix(name)).expect(name)
}
