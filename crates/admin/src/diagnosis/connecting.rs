//! Problems before media can flow: negotiation, ICE, DTLS.

use std::time::Duration;

use portunus_media::{DtlsState, IceState, PeerStats};

use super::{Cause, Observed, seconds};

/// An answer takes a round trip, plus the time of the application.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Candidates come with the description, or one by one within 2 s of it.
const CANDIDATES_WAIT: Duration = Duration::from_secs(3);
/// Candidate pairs work within 2 s or hardly ever. Allocating a relay takes slightly longer.
const ICE_WAIT: Duration = Duration::from_secs(5);
/// A handshake takes two or three round trips, and a lost flight is repeated after a second.
const DTLS_WAIT: Duration = Duration::from_secs(3);

/// Returns why there is no connection, although there should be one.
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
    let attempt = ice.attempt.as_ref()?;
    let wait = match ice.state {
        Some(IceState::Connected | IceState::Ready) => return None,
        _ if attempt.was_connected => Duration::ZERO,
        _ if attempt.remotes.is_empty() => CANDIDATES_WAIT,
        _ => ICE_WAIT,
    };
    (attempt.time >= wait).then(|| attempt.cause().into())
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
