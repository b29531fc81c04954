//! Requests that may show something that opens a resource: not too many wrong ones.

use portunus_core::Fields;

use crate::{Guessing, Id, Maker, Refusal, Resource, Resources, check_secret};

/// Why a plugin refuses a request, as far as guesses are concerned.
pub trait Refused: From<Guessing> {
    /// Returns whether this member of the request was wrong: `pin`, `secret` or `token`.
    fn blames(&self, member: &str) -> bool;
}

impl<R: Resource> Resources<R> {
    /// Answers a request that may show a secret. After too many wrong ones, refuses it without a
    /// look.
    pub fn guarded<T, E: Refused>(
        &self,
        fields: Fields<'_>,
        maker: Maker,
        answer: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.may_try(fields, maker)?;
        self.learned(fields, maker, answer())
    }

    /// Answers a request that takes time, like [`Resources::guarded`].
    pub async fn guarded_later<T, E: Refused>(
        &self,
        fields: Fields<'_>,
        maker: Maker,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.may_try(fields, maker)?;
        self.learned(fields, maker, answer.await)
    }

    /// Returns whether a request shows the secret of the resource `id`, or needs none. It is for
    /// requests that are answered either way, though differently. A wrong secret counts.
    pub fn shows_secret(
        &self,
        id: &Id,
        secret: Option<&str>,
        fields: Fields<'_>,
        maker: Maker,
    ) -> Result<bool, Guessing> {
        let client = match maker {
            Maker::Client(client) if fields.has("secret") && secret.is_some() => Some(client),
            Maker::Client(_) | Maker::Operator => None,
        };
        if let Some(client) = client {
            self.guesses().check(client, Some(id))?;
        }
        let checked = check_secret(fields, "secret", secret);
        if let (Some(client), Err(Refusal::Wrong(_)), Ok(Some(shown))) =
            (client, &checked, fields.member("secret"))
        {
            self.guesses().note(client, Some(id.clone()), &[shown]);
        }
        Ok(checked.is_ok())
    }

    fn learned<T, E: Refused>(
        &self,
        fields: Fields<'_>,
        maker: Maker,
        answered: Result<T, E>,
    ) -> Result<T, E> {
        if let Err(refusal) = &answered {
            self.tried(fields, maker, |member| refusal.blames(member));
        }
        answered
    }
}
