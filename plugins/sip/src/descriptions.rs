//! Session descriptions of requests and of SIP messages.

use portunus_core::sdp::Kind;
use portunus_core::{Jsep, JsepKind, Message};
use portunus_sip::agent::Body;

use crate::refusal::Refusal;

/// Makes the SDP body of a SIP message.
pub(crate) fn sdp_body(sdp: String) -> Body {
    Body {
        content_type: "application/sdp".to_owned(),
        content: sdp.into_bytes(),
    }
}

/// Returns the description of a request. It has to be of this kind, and not end-to-end encrypted.
pub(crate) fn description(message: &Message, kind: Option<JsepKind>) -> Result<&Jsep, Refusal> {
    let jsep = message.jsep.as_ref().ok_or(Refusal::MissingSdp)?;
    if kind.is_some_and(|kind| jsep.kind != kind) {
        return Err(Refusal::MissingSdp);
    }
    if jsep.e2ee {
        return Err(Refusal::Encrypted);
    }
    Ok(jsep)
}

/// Refuses descriptions with data channels.
pub(crate) fn without_data(jsep: &Jsep) -> Result<(), Refusal> {
    let mut media = jsep.description.media.iter();
    let has_data = media.any(|media| media.kind == Kind::Data && !media.rejected);
    match has_data {
        true => Err(Refusal::DataChannels),
        false => Ok(()),
    }
}
