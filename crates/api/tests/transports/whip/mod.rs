//! WHIP and WHEP: every status, with a plugin that publishes and plays one stream.

mod requests;
mod resources;
mod stage;

use std::sync::Arc;

use portunus_admin::{AdminOptions, Administration};
use portunus_api::{ApiConfig, Transports};
use portunus_core::CoreConfig;
use portunus_core::media::{CloseReason, Event};
use portunus_core::testing::{Line, TestServer, jsep};

use crate::server::{self, Answer, Server};
use stage::Stage;

pub const SDP: &str = "Content-Type: application/sdp";
pub const FRAGMENT: &str = "Content-Type: application/trickle-ice-sdpfrag";

pub async fn start() -> Server {
    start_with(CoreConfig::default(), server::config()).await
}

pub async fn start_with(core: CoreConfig, config: ApiConfig) -> Server {
    start_on(Arc::default(), core, config).await
}

/// The same, with the plugin at hand.
pub async fn start_on(stage: Arc<Stage>, core: CoreConfig, config: ApiConfig) -> Server {
    let core = TestServer::new(core, vec![stage]);
    let transports = Transports::start(
        config,
        Administration::new(core.gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await
    .unwrap();
    Server { core, transports }
}

/// An offer; `ufrag` names its ICE session.
pub fn offer(ufrag: &str, lines: &[Line]) -> String {
    let jsep = jsep("offer", ufrag, lines);
    jsep["sdp"].as_str().unwrap().to_owned()
}

/// An offer of a viewer.
pub fn viewer_offer(ufrag: &str) -> String {
    offer(ufrag, &[Line::Video]).replace("a=sendrecv", "a=recvonly")
}

impl Server {
    /// Sends an offer to an endpoint.
    pub async fn offer(&self, path: &str, sdp: &str, headers: &[&str]) -> Answer {
        let headers: Vec<&str> = [SDP].iter().chain(headers).copied().collect();
        self.request("POST", path, &headers, sdp.as_bytes()).await
    }

    /// A publisher's answer, which has to be one.
    pub async fn published(&self) -> Answer {
        let answer = self
            .offer("/whip/stage/7", &offer("ufrag1", &[Line::Video]), &[])
            .await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer
    }

    /// Lets the only PeerConnection come up, or end.
    pub async fn happen(&self, event: Event) {
        let peers = self.core.peers();
        assert_eq!(peers.len(), 1);
        self.core.happen(peers[0], event).await;
    }

    pub async fn connect_peer(&self) {
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        self.happen(Event::Connected { srtp_profile }).await;
    }

    pub async fn lose_peer(&self) {
        self.happen(Event::Closed(CloseReason::DtlsAlert)).await;
    }

    /// Waits until there are no sessions any more.
    pub async fn until_idle(&self) {
        let idle = async {
            while self.core.gateway.counters().snapshot().sessions > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let idle = tokio::time::timeout(server::PATIENCE, idle).await;
        idle.expect("no session stays behind");
        assert_eq!(self.core.peers(), []);
    }
}

impl Answer {
    /// Returns the detail of a problem (RFC 9457).
    pub fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["status"], status);
        assert!(!problem["title"].as_str().unwrap().is_empty());
        problem["detail"].as_str().unwrap().to_owned()
    }

    pub fn location(&self) -> &str {
        self.header("location").expect("a resource")
    }

    pub fn etag(&self) -> String {
        self.header("etag").expect("an entity tag").to_owned()
    }
}
