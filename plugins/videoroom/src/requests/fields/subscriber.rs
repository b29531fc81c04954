//! Requests of subscribers.

use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, Members};
use portunus_resources::Ids;
use portunus_room::{
    Change, LastN, LineSetting, MAX_SPEAKERS, PersonId, Subscribe, SubscriberConfigure,
    SubscriberJoin, Switch, Unsubscribe, Watch,
};
use serde::Deserialize;

use super::{person_in, settings};
use crate::refusal::Refusal;
use crate::requests::Participation;

/// Reads `join`, and the publisher if it is in the old form.
pub(crate) fn join_subscriber(
    fields: Fields<'_>,
    ids: Ids,
) -> Result<(SubscriberJoin, Option<PersonId>), Refusal> {
    let mut join: SubscriberJoin = fields.read()?;
    if let Some(speakers) = checked_last_n(fields.member("last_n")?)? {
        let kinds = wanted(fields, &[Kind::Audio, Kind::Video])?;
        join.last_n = Some(LastN { speakers, kinds });
    }
    if fields.has("streams") || join.last_n.is_some() {
        join.streams = list(ids.members(fields), "streams")?.unwrap_or_default();
        return Ok((join, None));
    }
    let feed = person_in(fields, ids, "feed")?;
    join.kinds = Some(wanted(fields, &[Kind::Audio, Kind::Video, Kind::Data])?);
    join.streams = vec![Subscribe {
        feed: feed.clone(),
        mid: None,
        crossrefid: None,
        send: true,
        layers: fields.read()?,
    }];
    Ok((join, Some(feed)))
}

/// Returns the wanted kinds of media: `kinds` without those that `offer_audio` and the like
/// exclude.
fn wanted(fields: Fields<'_>, kinds: &[Kind]) -> Result<Vec<Kind>, FieldError> {
    let mut wanted = kinds.to_vec();
    for kind in kinds {
        let offer = fields.member(&format!("offer_{}", kind.name()))?;
        wanted.retain(|it| it != kind || offer != Some(false));
    }
    Ok(wanted)
}

/// Reads `watch`.
pub(crate) fn watch(fields: Fields<'_>, ids: Ids) -> Result<Watch, Refusal> {
    let watch: Watch = ids.members(fields).read()?;
    checked_last_n(watch.last_n)?;
    Ok(watch)
}

/// Checks how many speakers are to be followed.
fn checked_last_n(last_n: Option<usize>) -> Result<Option<usize>, Refusal> {
    match last_n.is_some_and(|n| !(1..=MAX_SPEAKERS).contains(&n)) {
        true => Err(Refusal::value("last_n", "1 to 50")),
        false => Ok(last_n),
    }
}

/// Reads `subscribe`, `unsubscribe` or `update`, which `request` says.
pub(crate) fn change(
    fields: Fields<'_>,
    ids: Ids,
    request: Participation,
) -> Result<Change, Refusal> {
    let members = ids.members(fields);
    let (subscribe, unsubscribe, missing) = match request {
        Participation::Subscribe => (list(members, "streams")?, None, "streams"),
        Participation::Unsubscribe => (None, list(members, "streams")?, "streams"),
        _ => {
            let subscribe = list(members, "subscribe")?;
            (subscribe, list(members, "unsubscribe")?, "subscribe")
        }
    };
    if subscribe.is_none() && unsubscribe.is_none() {
        return Err(FieldError::Missing(missing.to_owned()).into());
    }
    let unsubscribe: Vec<Unsubscribe> = unsubscribe.unwrap_or_default();
    let whose = |request: &Unsubscribe| request.feed.is_some() || request.sub_mid.is_some();
    match unsubscribe.iter().all(whose) {
        true => Ok(Change {
            subscribe: subscribe.unwrap_or_default(),
            unsubscribe,
        }),
        false => Err(FieldError::Missing("feed".to_owned()).into()),
    }
}

/// Reads a list that is not empty, if it is there.
fn list<'a, T: Deserialize<'a>>(
    members: Members<'a>,
    name: &str,
) -> Result<Option<Vec<T>>, FieldError> {
    match members.member::<Vec<T>>(name)? {
        Some(list) if list.is_empty() => Err(FieldError::value(name, "should not be empty")),
        list => Ok(list),
    }
}

/// Reads `switch`.
pub(crate) fn switch(fields: Fields<'_>, ids: Ids) -> Result<Switch, Refusal> {
    let members = ids.members(fields);
    if let Some(entries) = list(members, "streams")? {
        return Ok(Switch::Streams(entries));
    }
    match members.member("feed")? {
        Some(feed) => Ok(Switch::Feed(feed)),
        None => Err(FieldError::Missing("streams".to_owned()).into()),
    }
}

/// A setting of an m-line. Members of publishers are checked for their types only.
#[derive(Deserialize)]
struct Setting {
    #[serde(rename = "audio_level_average")]
    _level: Option<u64>,
    #[serde(rename = "audio_active_packets")]
    _packets: Option<u64>,
    line: LineSetting,
}

/// Reads a subscriber's `configure`.
pub(crate) fn subscriber_configure(fields: Fields<'_>) -> Result<SubscriberConfigure, Refusal> {
    let settings = settings(fields, |setting: &Setting| setting.line.mid.as_ref())?;
    let mut configure: SubscriberConfigure = fields.read()?;
    checked_last_n(configure.last_n)?;
    configure.lines = settings.into_iter().map(|setting| setting.line).collect();
    Ok(configure)
}
