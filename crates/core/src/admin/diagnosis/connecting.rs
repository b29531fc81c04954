//! What keeps a PeerConnection from being made, or ended it: negotiation, ICE, DTLS.

use std::time::Duration;

use portunus_media::{DtlsState, IceState, PeerStats};

use super::{Cause, Observed, seconds};

/// An answer takes a round trip, and as long as the application takes to make it.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Candidates come with the description or, one by one, within a second or two of it.
const CANDIDATES_WAIT: Duration = Duration::from_secs(3);
/// Pairs of candidates work within a second or two, or hardly ever. A relay takes a bit longer to be allocated.
const ICE_WAIT: Duration = Duration::from_secs(5);
/// A handshake takes two or three round trips, and a lost flight is sent again after a second.
const DTLS_WAIT: Duration = Duration::from_secs(3);

/// Why there is no connection, if there is none although there should be.
pub(super) fn cause(observed: &Observed<'_>) -> Option<Cause> {
    let stats = observed.stats;
    if !observed.negotiated {
        return (stats.age >= ANSWER_WAIT).then(|| {
            let text = format!(
                "Offer and answer were not exchanged within {}: one side did not answer. Look at the client's log, and at what the \
                 plugin told it.",
                seconds(stats.age)
            );
            Cause::new("no-answer", text)
        });
    }
    ice(stats).or_else(|| dtls(stats))
}

fn ice(stats: &PeerStats) -> Option<Cause> {
    let ice = &stats.ice;
    match ice.state {
        Some(IceState::Connected | IceState::Ready) => return None,
        Some(IceState::Disconnected | IceState::Failed) if ice.connected.is_some() => {
            let since = ice.disconnected.unwrap_or(stats.age);
            let text = format!(
                "The client has not answered for {}: it was closed, went to sleep, or its network changed. It can restart ICE, or \
                 call again.",
                seconds(stats.age.saturating_sub(since))
            );
            return Some(Cause::new("connection-lost", text));
        }
        None
        | Some(
            IceState::Gathering | IceState::Connecting | IceState::Disconnected | IceState::Failed,
        ) => {}
    }
    if stats.age >= CANDIDATES_WAIT && ice.remote.is_empty() {
        return Some(no_candidate(stats));
    }
    (stats.age >= ICE_WAIT).then(|| no_pair(stats))
}

/// The client has named no address that is of use, and none of its checks came.
fn no_candidate(stats: &PeerStats) -> Cause {
    let (ice, age) = (&stats.ice, seconds(stats.age));
    match (ice.ignored_mdns, ice.ignored_tcp) {
        (0, 0) => Cause::new(
            "no-candidates",
            format!(
                "The client has named no address within {age}, and none of its checks came. Does the application pass its candidates \
                 on (trickle)?"
            ),
        ),
        (0, tcp) => Cause::new(
            "tcp-only",
            format!(
                "The client names {tcp} addresses of TCP only: its network blocks UDP. Turn media.ice_tcp on and open its ports, or \
                 give the client a TURN server."
            ),
        ),
        (mdns, _) => Cause::new(
            "mdns-only",
            format!(
                "The client hides its {mdns} addresses (mDNS), which is usual, but its own checks have not reached the server for \
                 {age}: a firewall blocks the server's media ports, or media.announced names a wrong address."
            ),
        ),
    }
}

/// Pairs are tried, and none works.
fn no_pair(stats: &PeerStats) -> Cause {
    let pairs = &stats.ice.pairs;
    let sum = |count: fn(&portunus_media::PairStats) -> u32| -> u32 {
        pairs
            .iter()
            .fold(0, |sum, pair| sum.saturating_add(count(pair)))
    };
    let sent = sum(|pair| pair.checks_sent);
    let answered = sum(|pair| pair.checks_answered);
    let received = sum(|pair| pair.checks_received);
    let age = seconds(stats.age);
    if received == 0 && answered == 0 {
        let ours = match sent {
            0 => String::new(),
            sent => format!(" and {sent} of the server's were not answered"),
        };
        return Cause::new(
            "unreachable",
            format!(
                "In {age} none of the client's checks came{ours}: a firewall blocks the server's media ports, or media.announced \
                 names a wrong address."
            ),
        );
    }
    if answered == 0 && !stats.ice.lite {
        return Cause::new(
            "one-way",
            format!(
                "{received} checks of the client came, but none of the server's {sent} was answered in {age}: what the server sends \
                 is lost. A firewall blocks its outgoing UDP, or it has several networks and answers from the wrong one (media.bind)."
            ),
        );
    }
    Cause::new(
        "not-nominated",
        format!(
            "Addresses work ({received} checks of the client came, {answered} of the server's were answered), but in {age} none was \
             chosen for good: the network is lossy, or changes."
        ),
    )
}

fn dtls(stats: &PeerStats) -> Option<Cause> {
    let dtls = &stats.dtls;
    if dtls.state == Some(DtlsState::Failed) {
        let text = "The DTLS handshake failed: the certificate is not the one whose fingerprint stands in the SDP, or something on the \
                    way changes packets. The server's log has the reason.";
        return Some(Cause::new("dtls-failed", text));
    }
    let since = stats.age.saturating_sub(stats.ice.connected?);
    (dtls.connected.is_none() && since >= DTLS_WAIT).then(|| {
        let came = match dtls.received.packets {
            0 => "nothing of the client's handshake came".to_owned(),
            packets => format!(
                "{packets} datagrams of the client's came, and the server repeated itself {} times",
                dtls.retransmissions
            ),
        };
        let text = format!(
            "ICE works, but the DTLS handshake is not done after {}: {came}. Large datagrams may be lost on the way (MTU), or the \
             client refuses the certificate.",
            seconds(since)
        );
        Cause::new("dtls-unfinished", text)
    })
}
