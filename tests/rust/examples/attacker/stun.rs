//! STUN messages, for checks and for TURN.

use turn_types::stun::attribute::{AttributeType, RawAttribute};
use turn_types::stun::message::{
    BINDING, IntegrityAlgorithm, IntegrityKey, Message, MessageWriteVec, Method,
    ShortTermCredentials,
};
use turn_types::stun::prelude::{MessageWrite, MessageWriteExt};

const USERNAME: u16 = 0x0006;
const PRIORITY: u16 = 0x0024;
const ICE_CONTROLLING: u16 = 0x802A;

/// Returns a request with these attributes, signed if there is a key.
pub fn request(method: Method, attributes: &[(u16, &[u8])], key: Option<&IntegrityKey>) -> Vec<u8> {
    let mut message = Message::builder_request(method, MessageWriteVec::new());
    for (kind, value) in attributes {
        let attribute = RawAttribute::new(AttributeType::new(*kind), value);
        message.add_attribute(&attribute).unwrap();
    }
    if let Some(key) = key {
        let signed = message.add_message_integrity_with_key(key, IntegrityAlgorithm::Sha1);
        signed.unwrap();
        message.add_fingerprint().unwrap();
    }
    message.finish()
}

/// Returns a connectivity check of ICE (RFC 8445 section 7.2.2).
pub fn check(name: &str, password: &str) -> Vec<u8> {
    let key = ShortTermCredentials::new(password.to_owned()).make_key();
    let attributes = [
        (USERNAME, name.as_bytes()),
        (PRIORITY, &1_845_501_695_u32.to_be_bytes()[..]),
        (ICE_CONTROLLING, &[7; 8]),
    ];
    request(BINDING, &attributes, Some(&key))
}
