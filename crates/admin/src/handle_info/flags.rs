//! The flags of a handle, as Janus names them.

use portunus_sdp::Signaling;
use portunus_sdp::negotiated::Kind;
use serde_json::{Value, json};

use portunus_core::HandleFacts;

pub(super) fn flags(facts: &HandleFacts) -> Value {
    let connection = facts.connection.as_ref();
    let is = |what: bool| connection.is_some() && what;
    let negotiated = connection.and_then(|it| it.negotiated.as_ref());
    let up = connection.is_some_and(|it| it.up);
    let signaling = connection.map(|it| it.signaling);
    let data = negotiated.is_some_and(|negotiated| {
        let mut media = negotiated.media.iter();
        media.any(|media| media.kind == Kind::Data && !media.disabled)
    });
    let rtx = negotiated.is_some_and(|negotiated| {
        let mut payloads = negotiated.media.iter().flat_map(|media| &media.payloads);
        payloads.any(|payload| payload.rtx.is_some())
    });
    json!({
        "got-offer": is(negotiated.is_some() || signaling != Some(Signaling::Stable)),
        "got-answer": negotiated.is_some(),
        "negotiated": negotiated.is_some(),
        "processing-offer": signaling == Some(Signaling::HaveRemoteOffer),
        "starting": negotiated.is_some() && !up,
        "ice-restart": connection.is_some_and(|it| it.restarting),
        "ready": up,
        "stopped": connection.is_none() && facts.had_connection,
        "alert": connection.is_none(),
        "trickle": connection.is_some_and(|it| it.remote.is_some()),
        "all-trickles": connection.is_some_and(|it| it.all_trickled || it.up),
        "resend-trickles": is(facts.full_trickle),
        "trickle-synced": false,
        "data-channels": data,
        // As in Janus 1.x: `webrtc.media` lists the media.
        "has-audio": false,
        "has-video": false,
        "new-datachan-sdp": data,
        "rfc4588-rtx": rtx,
        "cleaning": facts.closing,
        "e2ee": connection.is_some_and(|it| it.e2ee),
    })
}
