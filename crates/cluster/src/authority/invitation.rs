//! Invitations: one text that lets one node join once.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::error::ErrorStack;
use serde::{Deserialize, Serialize};

use super::AuthorityError;
use crate::id::NodeId;

/// The beginning of the text, with its version.
const PREFIX: &str = "ptk1.";

/// The longest text in bytes.
const LONGEST: usize = 16_384;

/// An invitation. Who has it gets a certificate of the cluster.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The node that is invited.
    pub node: NodeId,
    /// The node that issues the certificate.
    pub issuer: NodeId,
    /// `HOST:PORT` of its control port.
    pub address: String,
    /// What proves the invitation.
    pub(crate) secret: String,
    /// The authority of the cluster (PEM).
    pub(crate) ca: String,
}

impl Invitation {
    pub(super) fn new(
        node: &NodeId,
        issuer: &NodeId,
        address: String,
        ca: String,
    ) -> Result<Self, ErrorStack> {
        let mut secret = [0; 32];
        openssl::rand::rand_bytes(&mut secret)?;
        Ok(Invitation {
            node: node.clone(),
            issuer: issuer.clone(),
            address,
            secret: hexadecimal(&secret),
            ca,
        })
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invitation({} by {})", self.node, self.issuer)
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }
}

impl FromStr for Invitation {
    type Err = AuthorityError;

    fn from_str(text: &str) -> Result<Self, AuthorityError> {
        let wrong = |reason: &dyn fmt::Display| AuthorityError::Invitation(reason.to_string());
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(wrong(&"it is too long"));
        }
        let text = text.strip_prefix(PREFIX);
        let text = text.ok_or_else(|| wrong(&"it does not begin with ptk1."))?;
        let json = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| wrong(&error))?;
        serde_json::from_slice(&json).map_err(|error| wrong(&error))
    }
}

/// Returns bytes in hexadecimal.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
