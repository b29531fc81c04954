//! Responses and indications, written with `turn-types`.

use std::net::SocketAddr;

use turn_types::attribute::{Data, XorPeerAddress};
use turn_types::message::DATA;
use turn_types::stun::attribute::{
    AttributeType, AttributeWrite, ErrorCode, Nonce, Realm, UnknownAttributes,
};
use turn_types::stun::message::{IntegrityAlgorithm, IntegrityKey, Message, MessageWriteVec};
use turn_types::stun::prelude::{MessageWrite, MessageWriteExt};

/// The realm of all credentials. It has no meaning to clients.
pub(crate) const REALM: &str = "portunus";

/// Returns the response to a successful request.
pub(crate) fn success(
    request: &Message<'_>,
    attributes: &[&dyn AttributeWrite],
    key: Option<&IntegrityKey>,
) -> Vec<u8> {
    let builder = Message::builder_success(request, MessageWriteVec::new());
    complete(builder, attributes, key)
}

/// Returns the response to a refused request. It has no reason phrase, to be as short as possible:
/// it may be sent to a forged address.
pub(crate) fn error(request: &Message<'_>, code: u16, key: Option<&IntegrityKey>) -> Vec<u8> {
    error_with(request, code, &[], key)
}

/// Returns a request for credentials with a new nonce.
pub(crate) fn challenge(request: &Message<'_>, code: u16, nonce: &str) -> Vec<u8> {
    match (Realm::new(REALM), Nonce::new(nonce)) {
        (Ok(realm), Ok(nonce)) => error_with(request, code, &[&realm, &nonce], None),
        _ => error(request, code, None),
    }
}

/// Returns the error for unknown attributes that have to be understood.
pub(crate) fn unknown(
    request: &Message<'_>,
    attributes: &[AttributeType],
    key: Option<&IntegrityKey>,
) -> Vec<u8> {
    let unknown = UnknownAttributes::new(attributes);
    error_with(request, ErrorCode::UNKNOWN_ATTRIBUTE, &[&unknown], key)
}

/// Returns a peer's data for a client without a channel to it.
pub(crate) fn indication(peer: SocketAddr, data: &[u8]) -> Vec<u8> {
    let builder = Message::builder_indication(DATA, MessageWriteVec::new());
    let peer = XorPeerAddress::new(peer, builder.transaction_id());
    complete(builder, &[&peer, &Data::new(data)], None)
}

fn error_with(
    request: &Message<'_>,
    code: u16,
    attributes: &[&dyn AttributeWrite],
    key: Option<&IntegrityKey>,
) -> Vec<u8> {
    let mut builder = Message::builder_error(request, MessageWriteVec::new());
    if let Ok(code) = ErrorCode::new(code, "") {
        add(&mut builder, &code);
    }
    complete(builder, attributes, key)
}

fn complete(
    mut builder: MessageWriteVec,
    attributes: &[&dyn AttributeWrite],
    key: Option<&IntegrityKey>,
) -> Vec<u8> {
    for attribute in attributes {
        add(&mut builder, *attribute);
    }
    if let Some(key) = key
        && let Err(error) = builder.add_message_integrity_with_key(key, IntegrityAlgorithm::Sha1)
    {
        tracing::debug!(%error, "cannot sign a TURN response");
    }
    builder.finish()
}

fn add(builder: &mut MessageWriteVec, attribute: &dyn AttributeWrite) {
    // Fails only for a repeated attribute, and there are none.
    if let Err(error) = builder.add_attribute(attribute) {
        tracing::debug!(%error, "cannot write a TURN attribute");
    }
}
