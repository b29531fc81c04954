//! Requests and indications, written with `turn-types`.

use std::net::SocketAddr;

use turn_types::attribute::{ChannelNumber, Data, Lifetime, RequestedTransport, XorPeerAddress};
use turn_types::message::{ALLOCATE, CHANNEL_BIND, REFRESH, SEND};
use turn_types::stun::attribute::{AttributeWrite, Nonce, Realm, Username};
use turn_types::stun::message::{
    IntegrityAlgorithm, IntegrityKey, LongTermKeyCredentials, Message, MessageWriteVec, Method,
    TransactionId,
};
use turn_types::stun::prelude::{MessageWrite, MessageWriteExt};

use crate::Login;

/// The realm and nonce of a server with the login, and the key derived from them.
#[derive(Debug)]
pub(crate) struct Challenge {
    username: String,
    realm: String,
    nonce: String,
    pub(crate) key: IntegrityKey,
}

impl Challenge {
    /// Reads realm and nonce from a response. Returns `None` if one is missing.
    pub(crate) fn read(response: &Message<'_>, login: &Login) -> Option<Self> {
        let realm = response.attribute::<Realm>().ok()?.realm().to_owned();
        let nonce = response.attribute::<Nonce>().ok()?.nonce().to_owned();
        let (username, password) = (login.username.clone(), login.password.clone());
        let credentials = LongTermKeyCredentials::new(username.clone(), password, realm.clone());
        let key = credentials.make_key(IntegrityAlgorithm::Sha1);
        Some(Challenge {
            username,
            realm,
            nonce,
            key,
        })
    }
}

/// A request to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Allocate,
    Refresh,
    /// Ends the allocation.
    Release,
    Bind {
        number: u16,
        peer: SocketAddr,
    },
}

impl Request {
    fn method(self) -> Method {
        match self {
            Request::Allocate => ALLOCATE,
            Request::Refresh | Request::Release => REFRESH,
            Request::Bind { .. } => CHANNEL_BIND,
        }
    }

    /// Writes the request, with credentials once the server has requested them.
    pub(crate) fn write(self, challenge: Option<&Challenge>) -> (TransactionId, Vec<u8>) {
        let mut builder = Message::builder_request(self.method(), MessageWriteVec::new());
        let transaction = builder.transaction_id();
        match self {
            Request::Allocate => {
                add(
                    &mut builder,
                    &RequestedTransport::new(RequestedTransport::UDP),
                );
            }
            Request::Refresh => {}
            Request::Release => add(&mut builder, &Lifetime::new(0)),
            Request::Bind { number, peer } => {
                add(&mut builder, &ChannelNumber::new(number));
                add(&mut builder, &XorPeerAddress::new(peer, transaction));
            }
        }
        if let Some(challenge) = challenge {
            sign(&mut builder, challenge);
        }
        (transaction, builder.finish())
    }
}

/// Returns a datagram for a peer without a channel.
pub(crate) fn indication(peer: SocketAddr, data: &[u8]) -> Vec<u8> {
    let mut builder = Message::builder_indication(SEND, MessageWriteVec::new());
    let peer = XorPeerAddress::new(peer, builder.transaction_id());
    add(&mut builder, &peer);
    add(&mut builder, &Data::new(data));
    builder.finish()
}

fn sign(builder: &mut MessageWriteVec, challenge: &Challenge) {
    if let Ok(name) = Username::new(&challenge.username) {
        add(builder, &name);
    }
    if let (Ok(realm), Ok(nonce)) = (Realm::new(&challenge.realm), Nonce::new(&challenge.nonce)) {
        add(builder, &realm);
        add(builder, &nonce);
    }
    let algorithm = IntegrityAlgorithm::Sha1;
    if let Err(error) = builder.add_message_integrity_with_key(&challenge.key, algorithm) {
        tracing::debug!(%error, "cannot sign a TURN request");
    }
}

fn add(builder: &mut MessageWriteVec, attribute: &dyn AttributeWrite) {
    // Fails only for a repeated attribute, and there are none.
    if let Err(error) = builder.add_attribute(attribute) {
        tracing::debug!(%error, "cannot write a TURN attribute");
    }
}
