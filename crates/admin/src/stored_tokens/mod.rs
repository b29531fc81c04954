//! Requests about stored tokens.

use std::collections::BTreeSet;
use std::time::Duration;

use portunus_core::{ApiError, FieldError, Fields, Object, Right};
use portunus_tokens::{
    MAX_STORED, MAX_TOKEN, OpenedPlugins, Stored, StoredTokens, Tokens, TooManyTokens,
};
use serde_json::Value;
use tokio::time::Instant;

/// The longest validity of an added token, in seconds: a year.
const MAX_EXPIRES: u64 = 366 * 86_400;

/// Answers `add_token`, `allow_token`, `disallow_token`, `list_tokens` and `remove_token`, and
/// returns the members of the reply. `packages` are those of all plugins.
pub(crate) fn answer(
    tokens: &Tokens,
    verb: &str,
    fields: Fields<'_>,
    packages: &[&str],
) -> Result<Object, ApiError> {
    let answer: fn(&StoredTokens, Fields<'_>, &[&str]) -> Result<Object, ApiError> = match verb {
        "add_token" => add,
        "allow_token" => allow,
        "disallow_token" => disallow,
        "list_tokens" => list,
        "remove_token" => remove,
        _ => return Err(ApiError::InvalidPath(verb.to_owned())),
    };
    let stored = tokens.stored().ok_or_else(|| {
        ApiError::Unknown("Stored-Token based authentication disabled".to_owned())
    })?;
    answer(stored, fields, packages)
}

/// Adds a token. An existing token opens these plugins as well, and gets the given rights and
/// expiry.
fn add(stored: &StoredTokens, fields: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
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
    let added = stored.change(token, |now| {
        let plugins = match (plugins, now.map(|now| &now.plugins)) {
            (None, _) | (Some(_), Some(OpenedPlugins::All)) => OpenedPlugins::All,
            (Some(plugins), None) => OpenedPlugins::These(plugins),
            (Some(plugins), Some(OpenedPlugins::These(before))) => {
                OpenedPlugins::These(before | &plugins)
            }
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
    added.map_err(|TooManyTokens| {
        ApiError::Unknown(format!("Too many tokens (at most {MAX_STORED})"))
    })?;
    Ok(plugins_json(opened))
}

fn allow(stored: &StoredTokens, fields: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
    change_plugins(stored, fields, packages, |before, named| before | named)
}

fn disallow(
    stored: &StoredTokens,
    fields: Fields<'_>,
    packages: &[&str],
) -> Result<Object, ApiError> {
    change_plugins(stored, fields, packages, |before, named| before - named)
}

/// Changes which plugins a token opens.
fn change_plugins(
    stored: &StoredTokens,
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
    let changed = stored.change(token, |now| {
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
        // A token for all plugins stays one, so that it opens plugins of later versions.
        let plugins = match (&now.plugins, after == before) {
            (OpenedPlugins::All, true) => OpenedPlugins::All,
            _ => OpenedPlugins::These(after),
        };
        Some(Stored {
            plugins,
            ..now.clone()
        })
    });
    match changed {
        Ok(()) => outcome.map(plugins_json),
        // The token existed, so none was added.
        Err(TooManyTokens) => Err(ApiError::TokenNotFound(token.to_owned())),
    }
}

/// Lists all tokens that open a plugin.
fn list(stored: &StoredTokens, _: Fields<'_>, packages: &[&str]) -> Result<Object, ApiError> {
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
    let all = stored.list();
    let tokens: Vec<Value> = all.iter().filter_map(|stored| entry(stored)).collect();
    Ok(Object::new().with("data", Object::new().with("tokens", tokens)))
}

fn remove(stored: &StoredTokens, fields: Fields<'_>, _: &[&str]) -> Result<Object, ApiError> {
    let token = named(fields)?;
    match stored.remove(token) {
        true => Ok(Object::new()),
        false => Err(ApiError::Unknown(format!("Token {token} not found"))),
    }
}

fn plugins_json(plugins: BTreeSet<String>) -> Object {
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

/// Reads the plugins that a request names. All of them must exist.
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
