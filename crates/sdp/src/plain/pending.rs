//! Offers that wait for their answers.

use portunus_rtp::Mid;

use crate::description::{Direction, Media};
use crate::negotiated::Kind;

use super::crypto::{CryptoLine, SdesKey};
use super::layout::Layout;
use super::remote::FarSession;

/// The offer that waits for its answer.
#[derive(Debug, Clone, Default)]
pub(super) enum Pending {
    #[default]
    None,
    Offered(Box<Offered>),
    Taken(Box<Taken>),
}

/// An offer of this side.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub(super) layout: Layout,
    pub(super) media: Vec<OfferedMedia>,
    pub(super) is_mandatory: bool,
}

#[derive(Debug, Clone)]
pub(super) struct OfferedMedia {
    /// The index of the m-line.
    pub(super) index: usize,
    pub(super) kind: Kind,
    pub(super) media: Media,
    pub(super) direction: Direction,
    pub(super) key: Option<SdesKey>,
}

/// An offer of the far end.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) layout: Layout,
    pub(super) far: FarSession,
    pub(super) media: Vec<TakenMedia>,
}

#[derive(Debug, Clone)]
pub(super) struct TakenMedia {
    pub(super) index: usize,
    pub(super) kind: Kind,
    pub(super) mid: Mid,
    pub(super) key: Option<CryptoLine>,
}
