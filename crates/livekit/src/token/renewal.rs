//! Tokens by which clients reconnect later.

use std::time::Duration;

use super::{Grants, Keys, Verified};

/// The least lifetime of a renewed token, in seconds.
const RENEWED: u64 = 600;

/// Makes tokens with the grants of another one.
#[derive(Debug, Clone)]
pub struct Renewal {
    keys: Keys,
    verified: Verified,
}

impl Renewal {
    /// Returns the renewal of a token.
    pub const fn new(keys: Keys, verified: Verified) -> Self {
        Renewal { keys, verified }
    }

    /// Returns a token that is valid for ten minutes from `now` at least, and no shorter than the
    /// original. `None` means that its key is gone.
    pub fn renew(&self, now: u64) -> Option<String> {
        self.renewed(&self.verified.grants, now)
    }

    /// Returns such a token for another room.
    pub fn renew_for(&self, room: &str, now: u64) -> Option<String> {
        let mut grants = self.verified.grants.clone();
        if let Some(video) = &mut grants.video {
            room.clone_into(&mut video.room);
        }
        self.renewed(&grants, now)
    }

    fn renewed(&self, grants: &Grants, now: u64) -> Option<String> {
        let left = self.verified.expires_at.saturating_sub(now);
        let valid = Duration::from_secs(left.max(RENEWED));
        self.keys.sign(&self.verified.key, grants, now, valid).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::token::VideoGrant;

    #[test]
    fn a_token_lives_ten_minutes_more_or_as_long_as_the_first() {
        let keys = Keys::new([("devkey".to_owned(), "secret".into())]);
        let grants = Grants {
            identity: "al".to_owned(),
            ..Grants::default()
        };
        for (expires_at, expected) in [(1_100, 1_610), (5_000, 5_000)] {
            let verified = Verified {
                key: "devkey".to_owned(),
                grants: grants.clone(),
                expires_at,
            };
            let token = Renewal::new(keys.clone(), verified).renew(1_010).unwrap();
            let renewed = keys.verify(&token, 1_010).unwrap();
            assert_eq!(renewed.grants, grants);
            assert_eq!(renewed.expires_at, expected);
        }
    }

    #[test]
    fn a_token_for_another_room_has_the_same_grants() {
        let keys = Keys::new([("devkey".to_owned(), "secret".into())]);
        let grants = |room: &str| Grants {
            identity: "al".to_owned(),
            video: Some(VideoGrant {
                room: room.to_owned(),
                room_join: true,
                ..VideoGrant::default()
            }),
            ..Grants::default()
        };
        let verified = Verified {
            key: "devkey".to_owned(),
            grants: grants("den"),
            expires_at: 1_100,
        };
        let renewal = Renewal::new(keys.clone(), verified);
        let token = renewal.renew_for("attic", 1_010).unwrap();
        assert_eq!(keys.verify(&token, 1_010).unwrap().grants, grants("attic"));
    }
}
