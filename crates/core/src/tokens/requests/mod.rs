//! What administrators do with stored tokens while the server runs.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::stored::{Full, MAX_STORED, Plugins, Stored};
use super::{MAX_TOKEN, Tokens};
use crate::{ApiError, FieldError, Fields, Object, Right};

/// The longest time for which a token can be added, in seconds: a year.
const MAX_EXPIRES: u64 = 366 * 86_400;

impl Tokens {
    /// Answers `add_token`, `allow_token`, `disallow_token`, `list_tokens` and `remove_token`: the members of the reply.
    /// `packages` are those of the plugins that there are.
    pub(crate) fn request(
        &self,
        verb: &str,
        fields: Fields<'_>,
        packages: &[&str],
    ) -> Result<Object, ApiError> {
        let answer: fn(&Self, Fields<'_>, &[&str]) -> Result<Object, ApiError> = match verb {
            "add_token" => Tokens::add,
            "allow_token" => Tokens::allow,
            "disallow_token" => Tokens::disallow,
            "list_tokens" => Tokens::list,
            "remove_token" => Tokens::remove,
            _ => return Err(ApiError::InvalidPath(verb.to_owned())),
        };
        match self.token_auth {
            true => answer(self, fields, packages),
            false => Err(ApiError::Unknown(
                "Stored-Token based authentication disabled".to_owned(),
            )),
        }
    }

    /// A token that is there already opens these plugins too, and has the given rights and time instead of its own.
    fn add(&self, fields: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
        let token = named(fields)?;
        let wanted = fields.0.get("plugins").map(|list| {
            let list = list.as_array().ok_or_else(|| not_a_list("plugins"))?;
            Ok::<_, ApiError>(list)
        });
        let wanted = wanted.transpose()?.filter(|list| !list.is_empty());
        let plugins = wanted.map(|list| {
            let texts = list.iter().filter_map(Value::as_str);
            let known = texts.filter(|name| packages.contains(name));
            known.map(str::to_owned).collect::<BTreeSet<_>>()
        });
        let rights = rights(fields)?;
        let expires = expires(fields)?;
        let mut opened = BTreeSet::new();
        let added = self.stored.change(token, |now| {
            let plugins = match (plugins, now.map(|now| &now.plugins)) {
                (None, _) | (Some(_), Some(Plugins::All)) => Plugins::All,
                (Some(plugins), None) => Plugins::These(plugins),
                (Some(plugins), Some(Plugins::These(before))) => Plugins::These(before | &plugins),
            };
            opened = plugins.packages(packages);
            Some(Stored {
                token: token.to_owned(),
                plugins,
                rights: rights
                    .or_else(|| now.map(|now| now.rights.clone()))
                    .unwrap_or_default(),
                expires: expires.or_else(|| now.and_then(|now| now.expires)),
            })
        });
        added
            .map_err(|Full| ApiError::Unknown(format!("Too many tokens (at most {MAX_STORED})")))?;
        Ok(told(opened))
    }

    fn allow(&self, fields: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
        self.change_plugins(fields, packages, |before, named| before | named)
    }

    fn disallow(&self, fields: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
        self.change_plugins(fields, packages, |before, named| before - named)
    }

    /// Changes which plugins a token opens, by those that a request names.
    fn change_plugins(
        &self,
        fields: Fields<'_>,
        packages: &[&str],
        change: fn(&BTreeSet<String>, &BTreeSet<String>) -> BTreeSet<String>,
    ) -> Result<Object, ApiError> {
        let token = named(fields)?;
        let named = match fields.0.get("plugins") {
            None => Err(FieldError::Missing("plugins".to_owned()).into()),
            Some(list) => list.as_array().ok_or_else(|| not_a_list("plugins")),
        }?;
        if named.is_empty() {
            return Err(FieldError::value("plugins", "should not be empty").into());
        }
        let mut outcome = Err(ApiError::TokenNotFound(token.to_owned()));
        let changed = self.stored.change(token, |now| {
            let now = now?;
            let named = match known(named, packages) {
                Ok(named) => named,
                Err(error) => {
                    outcome = Err(error);
                    return None;
                }
            };
            let before = now.plugins.packages(packages);
            let after = change(&before, &named);
            outcome = Ok(after.clone());
            // A token for all plugins stays one, for those to come too.
            let plugins = match (&now.plugins, after == before) {
                (Plugins::All, true) => Plugins::All,
                _ => Plugins::These(after),
            };
            Some(Stored {
                plugins,
                ..now.clone()
            })
        });
        match changed {
            Ok(()) => outcome.map(told),
            // It was there already: none is added.
            Err(Full) => Err(ApiError::TokenNotFound(token.to_owned())),
        }
    }

    /// Tokens without plugins are not listed.
    fn list(&self, _: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
        let entry = |stored: &Stored| {
            let opened = stored.plugins.packages(packages);
            let rights: Vec<_> = stored.rights.iter().map(|right| right.as_str()).collect();
            let expires = stored.left().map(|left| left.as_secs());
            (!opened.is_empty()).then(|| {
                let entry = Object::new()
                    .with("token", stored.token.as_str())
                    .with("allowed_plugins", Vec::from_iter(opened))
                    .with("rights", rights)
                    .with_some("expires", expires);
                Value::from(entry)
            })
        };
        let stored = self.stored.list();
        let tokens: Vec<Value> = stored.iter().filter_map(|stored| entry(stored)).collect();
        Ok(Object::new().with("data", Object::new().with("tokens", tokens)))
    }

    fn remove(&self, fields: Fields<'_>, _: &[&str]) -> Result<Object, ApiError> {
        let token = named(fields)?;
        match self.stored.remove(token) {
            true => Ok(Object::new()),
            false => Err(ApiError::Unknown(format!("Token {token} not found"))),
        }
    }
}

fn told(plugins: BTreeSet<String>) -> Object {
    let plugins = Vec::from_iter(plugins);
    Object::new().with("data", Object::new().with("plugins", plugins))
}

fn named(fields: Fields<'_>) -> Result<&str, ApiError> {
    let token = fields.required_string("token")?;
    match (1..=MAX_TOKEN).contains(&token.len()) {
        true => Ok(token),
        false => Err(invalid("token should have 1 to 4096 bytes")),
    }
}

/// The plugins that a request names, all of which there have to be.
fn known(named: &[Value], packages: &[&str]) -> Result<BTreeSet<String>, ApiError> {
    let known = |name: &Value| {
        let name = name.as_str().filter(|name| packages.contains(name));
        let unknown = || invalid("plugins should have nothing in it but packages of plugins");
        name.map(str::to_owned).ok_or_else(unknown)
    };
    named.iter().map(known).collect()
}

fn rights(fields: Fields<'_>) -> Result<Option<Vec<Right>>, ApiError> {
    let Some(names) = fields.member::<Vec<&str>>("rights")? else {
        return Ok(None);
    };
    let mut rights = Vec::new();
    for name in names {
        let text = "rights should have nothing in it but create, record, forward and administer";
        let right = Right::from_name(name).ok_or_else(|| invalid(text))?;
        if !rights.contains(&right) {
            rights.push(right);
        }
    }
    Ok(Some(rights))
}

fn expires(fields: Fields<'_>) -> Result<Option<Instant>, ApiError> {
    match fields.positive("expires")? {
        None => Ok(None),
        Some(seconds @ 1..=MAX_EXPIRES) => Ok(Some(Instant::now() + Duration::from_secs(seconds))),
        Some(_) => Err(invalid("expires should be 1 to 31622400 seconds")),
    }
}

fn not_a_list(name: &str) -> ApiError {
    let error = FieldError::wrong_type(name, "an array");
    error.into()
}

fn invalid(what: &str) -> ApiError {
    ApiError::InvalidElement(format!("Invalid value ({what})"))
}

#[cfg(test)]
mod tests;
