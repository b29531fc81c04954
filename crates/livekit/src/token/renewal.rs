//! Tokens by which clients reconnect later.

use std::collections::HashMap;
use std::time::Duration;

use livekit_protocol::ParticipantPermission;

use super::{Grants, Keys, Verified};

/// The least lifetime of a renewed token, in seconds.
const RENEWED: u64 = 600;

/// The longest token with the present texts of a participant, in bytes. Clients send it in a URL.
const LONGEST: usize = 32 << 10;

/// The claims of a participant that may have changed since it joined.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PresentClaims {
    /// The name that others see.
    pub name: String,
    /// Text of the application.
    pub metadata: String,
    /// Texts of the application by name.
    pub attributes: HashMap<String, String>,
    /// The permissions in the room.
    pub permission: ParticipantPermission,
}

impl PresentClaims {
    /// Returns the length of all texts, in bytes.
    fn length(&self) -> usize {
        let attributes = self.attributes.iter();
        let texts = attributes.flat_map(|(name, value)| [name, value]);
        let texts = texts.chain([&self.name, &self.metadata]);
        texts.map(String::len).sum()
    }
}

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

    /// Returns a token with these claims that is valid for ten minutes from `now` at least, and no
    /// shorter than the original. If it were too long for a URL, it has the name, the metadata and
    /// the attributes of the original. `None` means that its key is gone.
    pub fn renew(&self, claims: PresentClaims, now: u64) -> Option<String> {
        self.renewed(self.verified.grants.clone(), claims, now)
    }

    /// Returns such a token for another room.
    pub fn renew_for(&self, room: &str, claims: PresentClaims, now: u64) -> Option<String> {
        let mut grants = self.verified.grants.clone();
        if let Some(video) = &mut grants.video {
            room.clone_into(&mut video.room);
        }
        self.renewed(grants, claims, now)
    }

    fn renewed(&self, mut grants: Grants, claims: PresentClaims, now: u64) -> Option<String> {
        if let Some(video) = &mut grants.video {
            video.set_permission(&claims.permission);
        }
        if claims.length() <= LONGEST {
            let present = Grants {
                name: claims.name,
                metadata: claims.metadata,
                attributes: claims.attributes,
                ..grants.clone()
            };
            let token = self.signed(&present, now)?;
            if token.len() <= LONGEST {
                return Some(token);
            }
        }
        self.signed(&grants, now)
    }

    fn signed(&self, grants: &Grants, now: u64) -> Option<String> {
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

    fn keys() -> Keys {
        Keys::new([("devkey".to_owned(), "secret".into())])
    }

    fn renewal(expires_at: u64) -> Renewal {
        let video = VideoGrant {
            room: "den".to_owned(),
            room_join: true,
            ..VideoGrant::default()
        };
        let grants = Grants {
            identity: "al".to_owned(),
            name: "Al".to_owned(),
            metadata: "first".to_owned(),
            room_preset: "large".to_owned(),
            video: Some(video),
            ..Grants::default()
        };
        let verified = Verified {
            key: "devkey".to_owned(),
            grants,
            expires_at,
        };
        Renewal::new(keys(), verified)
    }

    fn claims() -> PresentClaims {
        PresentClaims {
            name: "Albert".to_owned(),
            metadata: "later".to_owned(),
            attributes: [("seat".to_owned(), "7".to_owned())].into(),
            permission: ParticipantPermission {
                can_subscribe: true,
                ..ParticipantPermission::default()
            },
        }
    }

    #[test]
    fn a_token_lives_ten_minutes_more_or_as_long_as_the_first() {
        for (expires_at, expected) in [(1_100, 1_610), (5_000, 5_000)] {
            let token = renewal(expires_at).renew(claims(), 1_010).unwrap();
            let renewed = keys().verify(&token, 1_010).unwrap();
            assert_eq!(renewed.expires_at, expected);
        }
    }

    #[test]
    fn a_token_has_the_present_claims() {
        let token = renewal(1_100).renew(claims(), 1_010).unwrap();
        let grants = keys().verify(&token, 1_010).unwrap().grants;
        assert_eq!((&*grants.identity, &*grants.name), ("al", "Albert"));
        assert_eq!(
            (&*grants.metadata, &*grants.room_preset),
            ("later", "large")
        );
        assert_eq!(grants.attributes, claims().attributes);
        assert_eq!(grants.join(), Ok("den"));
        assert_eq!(grants.video.unwrap().permission(), claims().permission);
    }

    #[test]
    fn a_token_for_another_room_has_the_same_grants() {
        let token = renewal(1_100).renew_for("attic", claims(), 1_010).unwrap();
        let grants = keys().verify(&token, 1_010).unwrap().grants;
        assert_eq!(grants.join(), Ok("attic"));
        assert_eq!(grants.name, "Albert");
        assert_eq!(grants.video.unwrap().permission(), claims().permission);
    }

    #[test]
    fn a_token_has_the_first_texts_if_the_present_ones_are_too_long() {
        for length in [LONGEST - 1_000, LONGEST] {
            let claims = PresentClaims {
                metadata: "m".repeat(length),
                ..claims()
            };
            let token = renewal(1_100).renew(claims.clone(), 1_010).unwrap();
            assert!(token.len() <= LONGEST);
            let grants = keys().verify(&token, 1_010).unwrap().grants;
            assert_eq!((&*grants.name, &*grants.metadata), ("Al", "first"));
            assert_eq!(grants.video.unwrap().permission(), claims.permission);
        }
    }
}
