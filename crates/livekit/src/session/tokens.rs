//! The tokens by which the client reconnects.

use livekit_protocol::signal_response;
use tokio::time::Instant;

use super::{REFRESHING, Session};
use crate::hall::now_ms;
use crate::token::PresentClaims;

impl Session {
    /// Sends the client a token for reconnects.
    pub(super) fn refresh_token(&mut self) {
        self.refreshing = Instant::now() + REFRESHING;
        let claims = self.present_claims();
        let token = claims.and_then(|claims| self.token.renew(claims, now()));
        if let Some(token) = token {
            self.send(signal_response::Message::RefreshToken(token));
        }
    }

    /// Returns a token for another room. `None` means that the participant has left, or that the key
    /// of its token is gone.
    pub(super) fn token_for(&self, room: &str) -> Option<String> {
        self.token.renew_for(room, self.present_claims()?, now())
    }

    /// Returns the claims that the participant has now, or `None` if it is not in the room any more.
    fn present_claims(&self) -> Option<PresentClaims> {
        let (member, hall) = (&self.member, &self.member.hall);
        let state = hall.room.lock();
        let people = hall.people();
        let person = people.get(&member.id).filter(|it| it.sid == member.sid)?;
        let profile = &state.person(&member.id)?.profile;
        Some(PresentClaims {
            name: profile.display.clone().unwrap_or_default(),
            metadata: profile.metadata.clone().unwrap_or_default(),
            attributes: person.attributes.clone(),
            permission: person.permission.clone(),
        })
    }
}

/// Returns the time in seconds since 1970.
fn now() -> u64 {
    u64::try_from(now_ms() / 1_000).unwrap_or_default()
}
