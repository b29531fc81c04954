//! Events of a handle for subscribers of the server's events.

use portunus_media::{Event, IceCause, IceState, LineStats, MediaStats, PeerId};
use serde::Serialize;

use super::Handle;
use super::jsep::RawJsep;
use crate::JsepKind;
use crate::events::{EventBus, EventKind, lifecycle, media, statistics, webrtc};

impl Handle {
    pub(super) fn publish_attached(&self) {
        self.publish(EventKind::Handles, None, || {
            let shared = &self.shared;
            let package = shared.plugin.package;
            lifecycle::handle_attached(package, self.opaque_id(), self.token())
        });
    }

    pub(super) fn publish_detached(&self) {
        self.publish(EventKind::Handles, None, || {
            let shared = &self.shared;
            let package = shared.plugin.package;
            lifecycle::handle_detached(package, self.opaque_id(), self.token())
        });
    }

    pub(super) fn publish_remote_jsep(&self, jsep: &RawJsep<'_>) {
        self.publish(EventKind::Jsep, None, || {
            webrtc::remote_jsep(jsep.kind, jsep.sdp)
        });
    }

    pub(super) fn publish_local_jsep(&self, kind: JsepKind, sdp: &str) {
        self.publish(EventKind::Jsep, None, || webrtc::local_jsep(kind, sdp));
    }

    pub(super) fn publish_ice(&self, state: IceState) {
        self.publish(EventKind::WebRtc, Some(webrtc::ICE), || webrtc::ice(state));
    }

    pub(super) fn publish_local_candidates(&self, candidates: &[String]) {
        for text in candidates {
            self.publish(EventKind::WebRtc, Some(webrtc::LOCAL_CANDIDATE), || {
                webrtc::local_candidate(text)
            });
        }
    }

    pub(super) fn publish_remote_candidate(&self, text: &str) {
        self.publish(EventKind::WebRtc, Some(webrtc::REMOTE_CANDIDATE), || {
            webrtc::remote_candidate(text)
        });
    }

    pub(super) fn publish_hangup(&self, reason: &str, cause: Option<&IceCause>) {
        self.publish(EventKind::WebRtc, Some(webrtc::CONNECTION), || {
            webrtc::hangup(reason, cause)
        });
    }

    /// Publishes an event of the media plane, if subscribers get such events.
    pub(super) fn publish_peer_event(&self, event: &Event) {
        match *event {
            Event::Ice(state) => self.publish_ice(state),
            Event::SelectedPair(ref pair) => {
                self.publish(EventKind::WebRtc, Some(webrtc::SELECTED_PAIR), || {
                    webrtc::selected_pair(pair)
                });
            }
            Event::Dtls {
                state,
                retransmissions,
            } => self.publish(EventKind::WebRtc, Some(webrtc::DTLS), || {
                webrtc::dtls(state, retransmissions)
            }),
            Event::Connected { .. } => {
                self.publish(EventKind::WebRtc, Some(webrtc::CONNECTION), webrtc::up);
            }
            Event::Media {
                mid,
                audio,
                receiving,
                substream,
            } => self.publish(EventKind::Media, Some(media::STATE), || {
                let no_media_ms = self.shared.context.settings.no_media_ms();
                media::state(mid, audio, substream, receiving, no_media_ms)
            }),
            Event::SlowLink {
                mid,
                audio,
                uplink,
                lost,
            } => self.publish(EventKind::Media, Some(media::SLOW_LINK), || {
                media::slow_link(mid, audio, uplink, lost)
            }),
            // Plugins publish the consequences of these. An end is published as a hangup.
            Event::Talking { .. }
            | Event::Speech { .. }
            | Event::Layer { .. }
            | Event::Paused { .. }
            | Event::Remb { .. }
            | Event::DataChannel { .. }
            | Event::Data(_)
            | Event::Closed(_) => {}
        }
    }

    /// Publishes the statistics of the PeerConnection `peer`, unless it has ended. Returns the
    /// number of events.
    pub(crate) fn publish_statistics_of(&self, peer: PeerId, stats: &LineStats) -> usize {
        // Held until all are published, so that the end follows.
        let connections = self.connections();
        match connections.is_up(peer) {
            true => self.publish_statistics(&stats.media, stats.remb),
            false => 0,
        }
    }

    /// Publishes the statistics of the PeerConnection's m-lines, with the client's last estimate of
    /// its downlink. Returns the number of events.
    pub(super) fn publish_statistics(&self, lines: &[MediaStats], remb: Option<u64>) -> usize {
        let kind = EventKind::Media;
        let subtype = Some(statistics::STATISTICS);
        let all = statistics::of_lines(lines, remb);
        if self.shared.context.facts.statistics.combine_media_stats {
            self.publish(kind, subtype, || all);
            return 1;
        }
        for figures in &all {
            self.publish(kind, subtype, || figures);
        }
        all.len()
    }

    fn publish<B: Serialize>(
        &self,
        kind: EventKind,
        subtype: Option<u8>,
        body: impl FnOnce() -> B,
    ) {
        self.events()
            .publish(kind, subtype, || self.event_address(), body);
    }

    pub(super) fn events(&self) -> &EventBus {
        &self.shared.context.facts.events
    }
}
