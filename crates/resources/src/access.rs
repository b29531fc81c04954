//! Access to a resource: its secret, its pin and its tokens.

use std::collections::BTreeSet;

use portunus_core::{FieldError, Fields, equal_in_constant_time};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::sealed::SealedTokens;
use crate::{Refusal, sealed};

/// The limit of bytes of all tokens of a resource: about 5,000 UUIDs. Each check reads all of them.
const MAX_TOKENS: usize = 512 * 1024;

/// The most tokens that other nodes of a cluster are told of. With more of them, only the home of
/// the resource knows them.
const MAX_SEALED: usize = 1_200;

/// The memory for a token besides its own bytes.
const TOKEN_OVERHEAD: usize = 64;

/// The access to a resource, in `create` and the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// It is not in lists, but for administrators.
    pub is_private: bool,
    /// The secret of those who manage it.
    pub secret: Option<String>,
    /// The pin of those who use it.
    pub pin: Option<String>,
}

impl Access {
    /// Checks that a request may manage the resource.
    pub fn check_secret(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        check_secret(fields, "secret", self.secret.as_deref())
    }

    /// Checks that a request may use the resource.
    pub fn check_pin(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        check_secret(fields, "pin", self.pin.as_deref())
    }

    /// Returns whether this pin permits the use of the resource.
    pub fn takes_pin(&self, shown: Option<&str>) -> bool {
        match &self.pin {
            None => true,
            Some(pin) => shown.is_some_and(|shown| sealed::is(pin, shown)),
        }
    }

    /// Returns it with its secret and its pin in a form that shows nothing of them, and permits the
    /// same. It is for other nodes of a cluster. The form of a thing's name is the same as long as
    /// the process runs.
    #[must_use]
    pub fn sealed(&self, name: &str) -> Self {
        let seal = |secret: &str| sealed::seal(secret, name);
        Access {
            is_private: self.is_private,
            secret: self.secret.as_deref().map(seal),
            pin: self.pin.as_deref().map(seal),
        }
    }

    /// Returns whether there is a secret, and a request shows it.
    pub fn shows_secret(&self, fields: Fields<'_>) -> bool {
        self.secret.is_some() && self.check_secret(fields).is_ok()
    }
}

/// Reads the members of a request that may show a secret. The type of the secret is checked first.
pub fn read_with_secret<'a, T: Deserialize<'a>>(fields: Fields<'a>) -> Result<T, FieldError> {
    fields.member::<&str>("secret")?;
    fields.read()
}

/// Checks that member `name` is `secret`, if there is one.
pub fn check_secret(
    fields: Fields<'_>,
    name: &'static str,
    secret: Option<&str>,
) -> Result<(), Refusal> {
    let Some(secret) = secret else { return Ok(()) };
    let shown = fields.required(name)?;
    match sealed::is(secret, shown) {
        true => Ok(()),
        false => Err(Refusal::Wrong(name)),
    }
}

/// The members of the request `allowed` that are checked before the room is looked up: not those in
/// the list.
#[derive(Debug, Deserialize)]
pub struct AllowedRequest<'a> {
    /// The action, in upper or lower case.
    pub action: &'a str,
    #[serde(rename = "allowed")]
    _allowed: Option<Vec<IgnoredAny>>,
}

/// The members of the request `allowed`, with the list.
#[derive(Deserialize)]
struct Change<'a> {
    action: &'a str,
    #[serde(borrow)]
    allowed: Option<Vec<&'a str>>,
}

/// The tokens of which users of a resource have to show one, if they are checked.
#[derive(Debug, Clone, Default)]
pub struct AllowedTokens {
    checked: bool,
    tokens: BTreeSet<String>,
    /// Those that another node of a cluster has told of, in sealed form.
    sealed: Option<SealedTokens>,
}

/// The tokens of a resource in a form that shows nothing of them, for other nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SealedAllowed {
    /// Whether users have to show one.
    checked: bool,
    /// The tokens. `None` if they are too many to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<SealedTokens>,
}

impl AllowedTokens {
    /// Returns whether users have to show one.
    pub const fn is_checked(&self) -> bool {
        self.checked
    }

    /// Returns whether there are none, and nobody has to show one.
    pub fn is_default(&self) -> bool {
        !self.checked && self.tokens.is_empty() && self.sealed.is_none()
    }

    /// Reads the list `allowed` of a `create`. Tokens are checked if it is there.
    pub fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let tokens = fields.member::<Vec<&str>>("allowed")?;
        let checked = tokens.is_some();
        let mut allowed = AllowedTokens::default();
        allowed.add(tokens.into_iter().flatten())?;
        Ok(AllowedTokens { checked, ..allowed })
    }

    /// Returns them in sealed form. `owner` is the name of the resource.
    pub fn sealed(&self, owner: &str) -> SealedAllowed {
        let known = self.sealed.as_ref();
        let count = self
            .tokens
            .len()
            .saturating_add(known.map_or(0, SealedTokens::len));
        let fits = count <= MAX_SEALED;
        SealedAllowed {
            checked: self.checked,
            tokens: fits.then(|| SealedTokens::seal(self.tokens.iter(), owner, known)),
        }
    }

    /// Returns the tokens that another node has told of.
    pub fn of_sealed(sealed: SealedAllowed) -> Self {
        AllowedTokens {
            checked: sealed.checked,
            tokens: BTreeSet::new(),
            sealed: sealed.tokens,
        }
    }

    /// Applies the request `allowed`. Returns the tokens in order, or `None` if they are not
    /// checked any more.
    pub fn change(&mut self, fields: Fields<'_>) -> Result<Option<Vec<&str>>, Refusal> {
        let Change { action, allowed } = fields.read()?;
        let tokens = allowed.into_iter().flatten();
        match action.to_ascii_lowercase().as_str() {
            "enable" => self.checked = true,
            "disable" => {
                self.checked = false;
                return Ok(None);
            }
            "add" => self.add(tokens)?,
            "remove" => tokens.for_each(|token| {
                self.tokens.remove(token);
                if let Some(sealed) = &mut self.sealed {
                    sealed.remove(token);
                }
            }),
            _ => {
                let actions = "enable, disable, add or remove";
                return Err(Refusal::Value("action", actions));
            }
        }
        Ok(Some(self.tokens.iter().map(String::as_str).collect()))
    }

    /// Checks that `shown` is one of the tokens, if they are checked.
    pub fn check(&self, shown: Option<&str>) -> Result<(), Refusal> {
        if !self.checked {
            return Ok(());
        }
        let shown = shown.ok_or(Refusal::TokenNeeded)?;
        let compare = |found, token: &String| found | equal_in_constant_time(token, shown);
        let is_sealed = self.sealed.as_ref().is_some_and(|sealed| sealed.has(shown));
        match is_sealed | self.tokens.iter().fold(false, compare) {
            true => Ok(()),
            false => Err(Refusal::Wrong("token")),
        }
    }

    /// Adds all tokens, or none if they are too many.
    fn add<'a>(&mut self, tokens: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
        let mut all = self.tokens.clone();
        all.extend(tokens.map(str::to_owned));
        let bytes = |token: &String| token.len().saturating_add(TOKEN_OVERHEAD);
        if all.iter().map(bytes).sum::<usize>() > MAX_TOKENS {
            let most = "512 KiB at most, with 64 bytes for each token besides its own";
            return Err(Refusal::Value("allowed", most));
        }
        self.tokens = all;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use serde_json::{Value, json};

    use super::*;

    fn fields(members: &Value) -> Fields<'_> {
        Fields(members.as_object().unwrap())
    }

    #[test]
    fn a_secret_that_there_is_has_to_be_shown() {
        let access = Access {
            secret: Some("s".to_owned()),
            ..Access::default()
        };
        let check = |members: Value| access.check_secret(fields(&members));
        assert_eq!(check(json!({ "secret": "s" })), Ok(()));
        assert_eq!(
            check(json!({ "secret": "t" })),
            Err(Refusal::Wrong("secret"))
        );
        let missing = FieldError::Missing("secret".to_owned());
        assert_eq!(check(json!({})), Err(Refusal::Field(missing)));
        assert!(check(json!({ "secret": 1 })).is_err());
        let nothing = json!({});
        assert_eq!(access.check_pin(fields(&nothing)), Ok(()));
        assert!(!Access::default().shows_secret(fields(&nothing)));
    }

    #[test]
    fn tokens_are_checked_from_the_moment_on_that_there_is_a_list() {
        let none = AllowedTokens::read(fields(&json!({}))).unwrap();
        assert_eq!(none.check(None), Ok(()));
        let list = json!({ "allowed": ["b", "a"] });
        let mut tokens = AllowedTokens::read(fields(&list)).unwrap();
        assert_eq!(tokens.check(None), Err(Refusal::TokenNeeded));
        assert_eq!(tokens.check(Some("c")), Err(Refusal::Wrong("token")));
        assert_eq!(tokens.check(Some("a")), Ok(()));
        let add = json!({ "action": "ADD", "allowed": ["c"] });
        assert_eq!(tokens.change(fields(&add)), Ok(Some(vec!["a", "b", "c"])));
        let remove = json!({ "action": "remove", "allowed": ["a"] });
        assert_eq!(tokens.change(fields(&remove)), Ok(Some(vec!["b", "c"])));
        assert!(tokens.check(Some("a")).is_err());
        let disable = json!({ "action": "disable" });
        assert_eq!(tokens.change(fields(&disable)), Ok(None));
        assert_eq!(tokens.check(Some("a")), Ok(()));
        assert!(tokens.change(fields(&json!({ "action": "x" }))).is_err());
    }

    #[test]
    fn a_list_of_tokens_has_an_end() {
        let many: Vec<_> = (0..5_000).map(|token| format!("{token:036}")).collect();
        let list = json!({ "allowed": many });
        let mut tokens = AllowedTokens::read(fields(&list)).unwrap();
        let more = json!({ "action": "add", "allowed": ["a".repeat(30_000)] });
        let refused = tokens.change(fields(&more));
        assert!(matches!(refused, Err(Refusal::Value("allowed", _))));
        let again = json!({ "action": "add", "allowed": [many[7]] });
        assert!(tokens.change(fields(&again)).is_ok());
    }
}
