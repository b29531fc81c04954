//! Requests with valid credentials, for tests and fuzz targets.

use std::net::SocketAddr;

use turn_types::stun::attribute::{
    Fingerprint, MessageIntegrity, MessageIntegritySha256, Nonce, RawAttribute, Realm, Username,
};
use turn_types::stun::message::{
    IntegrityAlgorithm, LongTermKeyCredentials, Message, MessageWriteVec, Method,
};
use turn_types::stun::prelude::{Attribute, AttributeStaticType, MessageWrite, MessageWriteExt};

use crate::message::REALM;
use crate::{Now, Shared};

/// The lifetime of the credentials in seconds.
const LIFETIME: u64 = 600;

impl Shared {
    /// Makes a request of `client`, with the readable part of encoded attributes.
    pub fn signed(
        &self,
        client: SocketAddr,
        method: u16,
        mut attributes: &[u8],
        now: Now,
    ) -> Vec<u8> {
        const LAST: [turn_types::stun::attribute::AttributeType; 3] = [
            MessageIntegrity::TYPE,
            MessageIntegritySha256::TYPE,
            Fingerprint::TYPE,
        ];
        let method = Method::new(method & 0x0FFF);
        let mut builder = Message::builder_request(method, MessageWriteVec::new());
        while let Ok(attribute) = RawAttribute::from_bytes(attributes) {
            let len = usize::from(attribute.length()).saturating_add(4);
            if !LAST.contains(&attribute.get_type()) {
                // A repeated attribute is skipped.
                let _ = builder.add_attribute(&attribute);
            }
            attributes = attributes
                .get(len.next_multiple_of(4)..)
                .unwrap_or_default();
        }
        let login = self
            .keychain
            .login("test", now.unix.saturating_add(LIFETIME));
        let nonce = self.nonces.make(client, now.unix);
        if let Ok(name) = Username::new(&login.username) {
            let _ = builder.add_attribute(&name);
        }
        if let (Ok(realm), Ok(nonce)) = (Realm::new(REALM), Nonce::new(&nonce)) {
            let _ = builder.add_attribute(&realm);
            let _ = builder.add_attribute(&nonce);
        }
        let (name, password) = (login.username, login.password);
        let login = LongTermKeyCredentials::new(name, password, REALM.to_owned());
        let sha1 = IntegrityAlgorithm::Sha1;
        let _ = builder.add_message_integrity_with_key(&login.make_key(sha1), sha1);
        builder.finish()
    }
}
