//! The ids of rooms, sessions of participants, and tracks.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::Rng;
use rand::distr::Alphanumeric;

/// The number of random characters of an id.
const LENGTH: usize = 12;

/// The characters of an id.
const CHARACTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The kind of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// A room.
    Room,
    /// A session of a participant.
    Participant,
    /// A track.
    Track,
    /// A data track.
    DataTrack,
    /// A worker of agents.
    Worker,
    /// A job of an agent.
    Job,
    /// A dispatch of agents.
    Dispatch,
    /// An egress.
    Egress,
    /// An ingress.
    Ingress,
    /// The session of an ingress.
    IngressSession,
    /// A trunk of telephones.
    Trunk,
    /// A rule for calls that come in.
    DispatchRule,
    /// A call.
    SipCall,
    /// A transfer of a call.
    SipTransfer,
}

impl IdKind {
    const fn prefix(self) -> &'static str {
        match self {
            IdKind::Room => "RM_",
            IdKind::Participant => "PA_",
            IdKind::Track => "TR_",
            IdKind::DataTrack => "DTR_",
            IdKind::Worker => "AW_",
            IdKind::Job => "AJ_",
            IdKind::Dispatch => "AD_",
            IdKind::Egress => "EG_",
            IdKind::Ingress => "IN_",
            IdKind::IngressSession => "RS_",
            IdKind::Trunk => "ST_",
            IdKind::DispatchRule => "SDR_",
            IdKind::SipCall => "SCL_",
            IdKind::SipTransfer => "STF_",
        }
    }

    /// Returns the id that follows from a thing, so that all nodes of a cluster have the same one.
    pub fn derived(self, of: impl Hash) -> String {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        let mut rest = hasher.finish();
        let mut id = self.prefix().to_owned();
        for _ in 0..LENGTH {
            let at = usize::try_from(rest % 62).unwrap_or_default();
            id.extend(CHARACTERS.chars().nth(at));
            rest /= 62;
        }
        id
    }

    /// Returns a new id.
    pub fn random(self) -> String {
        let random = rand::rng().sample_iter(Alphanumeric).take(LENGTH);
        let mut id = self.prefix().to_owned();
        id.extend(random.map(char::from));
        id
    }
}
