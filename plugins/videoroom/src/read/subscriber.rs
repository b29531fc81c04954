//! Requests of those who receive.

use portunus_core::media::Priority;
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields};
use portunus_resources::Ids;
use portunus_room::{
    Change, LastN, LayerRequest, LineSetting, MAX_SPEAKERS, PersonId, Subscribe,
    SubscriberConfigure, SubscriberJoin, Switch, SwitchEntry, Unsubscribe, Watch,
};

use super::{person, person_in, text};
use crate::refusal::Refusal;
use crate::requests::Request;

/// Reads `join`, and the publisher if it is in the old form.
pub(crate) fn join_subscriber(
    fields: Fields<'_>,
    ids: Ids,
) -> Result<(SubscriberJoin, Option<PersonId>), Refusal> {
    let flag = |name| Ok::<_, Refusal>(fields.boolean(name)?.unwrap_or(true));
    let join = SubscriberJoin {
        private_id: fields.positive("private_id")?,
        use_msid: fields.boolean("use_msid")?.unwrap_or(false),
        autoupdate: flag("autoupdate")?,
        ..SubscriberJoin::default()
    };
    let last_n = match last_n(fields)? {
        Some(speakers) => {
            let kinds = [
                (Kind::Audio, flag("offer_audio")?),
                (Kind::Video, flag("offer_video")?),
            ];
            let kinds = wanted(kinds);
            Some(LastN { speakers, kinds })
        }
        None => None,
    };
    if fields.has("streams") || last_n.is_some() {
        let streams = list(fields, "streams", |entry| subscribe(entry, ids))?;
        let join = SubscriberJoin {
            streams: streams.unwrap_or_default(),
            last_n,
            ..join
        };
        return Ok((join, None));
    }
    let feed = person_in(fields, ids, "feed")?;
    let kinds = wanted([
        (Kind::Audio, flag("offer_audio")?),
        (Kind::Video, flag("offer_video")?),
        (Kind::Data, flag("offer_data")?),
    ]);
    let stream = Subscribe {
        feed: feed.clone(),
        mid: None,
        crossrefid: None,
        send: true,
        layers: layers(fields)?,
    };
    let join = SubscriberJoin {
        streams: vec![stream],
        kinds: Some(kinds),
        ..join
    };
    Ok((join, Some(feed)))
}

fn wanted<const N: usize>(kinds: [(Kind, bool); N]) -> Vec<Kind> {
    let wanted = kinds.into_iter().filter(|(_, wanted)| *wanted);
    wanted.map(|(kind, _)| kind).collect()
}

/// Reads `watch`.
pub(crate) fn watch(fields: Fields<'_>, ids: Ids) -> Result<Watch, Refusal> {
    Ok(Watch {
        feed: ids.read(fields, "feed")?.map(|id| person(&id)),
        private_id: fields.positive("private_id")?,
        last_n: last_n(fields)?,
        e2ee: fields.boolean("e2ee")?,
    })
}

/// Reads how many speakers are to be followed.
fn last_n(fields: Fields<'_>) -> Result<Option<usize>, Refusal> {
    let Some(n) = fields.positive("last_n")? else {
        return Ok(None);
    };
    let n = usize::try_from(n).ok();
    match n.filter(|n| (1..=MAX_SPEAKERS).contains(n)) {
        None => Err(Refusal::value("last_n", "1 to 50")),
        n => Ok(n),
    }
}

/// Reads `subscribe`, `unsubscribe` or `update`, which `request` says.
pub(crate) fn change(fields: Fields<'_>, ids: Ids, request: Request) -> Result<Change, Refusal> {
    let missing = |name: &str| FieldError::Missing(name.to_owned());
    let subscribes = |name| list(fields, name, |entry| subscribe(entry, ids));
    let unsubscribes = |name| list(fields, name, |entry| unsubscribe(entry, ids));
    let (subscribe, unsubscribe) = match request {
        Request::Subscribe => {
            let subscribe = subscribes("streams")?;
            (Some(subscribe.ok_or_else(|| missing("streams"))?), None)
        }
        Request::Unsubscribe => {
            let unsubscribe = unsubscribes("streams")?;
            (None, Some(unsubscribe.ok_or_else(|| missing("streams"))?))
        }
        _ => (subscribes("subscribe")?, unsubscribes("unsubscribe")?),
    };
    if subscribe.is_none() && unsubscribe.is_none() {
        return Err(missing("subscribe").into());
    }
    Ok(Change {
        subscribe: subscribe.unwrap_or_default(),
        unsubscribe: unsubscribe.unwrap_or_default(),
    })
}

/// Reads a list that is not empty, if it is there.
fn list<T>(
    fields: Fields<'_>,
    name: &str,
    read: impl Fn(Fields<'_>) -> Result<T, FieldError>,
) -> Result<Option<Vec<T>>, FieldError> {
    let entries = fields.some_objects(name)?;
    let entries = entries.map(|entries| entries.into_iter().map(read).collect());
    entries.transpose()
}

fn subscribe(fields: Fields<'_>, ids: Ids) -> Result<Subscribe, FieldError> {
    Ok(Subscribe {
        feed: person_in(fields, ids, "feed")?,
        mid: text(fields, "mid")?,
        crossrefid: text(fields, "crossrefid")?,
        send: fields.boolean("send")?.unwrap_or(true),
        layers: layers(fields)?,
    })
}

fn unsubscribe(fields: Fields<'_>, ids: Ids) -> Result<Unsubscribe, FieldError> {
    let request = Unsubscribe {
        feed: ids.read(fields, "feed")?.map(|id| person(&id)),
        mid: text(fields, "mid")?,
        sub_mid: text(fields, "sub_mid")?,
    };
    match request.feed.is_none() && request.sub_mid.is_none() {
        true => Err(FieldError::Missing("feed".to_owned())),
        false => Ok(request),
    }
}

/// Reads `switch`.
pub(crate) fn switch(fields: Fields<'_>, ids: Ids) -> Result<Switch, Refusal> {
    let entry = |fields: Fields<'_>| {
        Ok(SwitchEntry {
            feed: person_in(fields, ids, "feed")?,
            mid: fields.required_string("mid")?.to_owned(),
            sub_mid: fields.required_string("sub_mid")?.to_owned(),
            layers: layers(fields)?,
        })
    };
    if let Some(entries) = list(fields, "streams", entry)? {
        return Ok(Switch::Streams(entries));
    }
    match ids.read(fields, "feed")? {
        Some(feed) => Ok(Switch::Feed(person(&feed))),
        None => Err(FieldError::Missing("streams".to_owned()).into()),
    }
}

/// Reads a subscriber's `configure`.
pub(crate) fn subscriber_configure(fields: Fields<'_>) -> Result<SubscriberConfigure, Refusal> {
    let lines = match fields.objects("streams")? {
        Some(entries) => entries.into_iter().map(setting).collect(),
        None => setting(fields).map(|setting| vec![setting]),
    };
    let lines: Vec<LineSetting> = lines?;
    if lines.len() > 1 && lines.iter().any(|setting| setting.mid.is_none()) {
        return Err(Refusal::value(
            "mid",
            "needed where there are several streams",
        ));
    }
    Ok(SubscriberConfigure {
        lines,
        audio: fields.boolean("audio")?,
        video: fields.boolean("video")?,
        data: fields.boolean("data")?,
        restart: fields.boolean("restart")?.unwrap_or(false),
        update: fields.boolean("update")?.unwrap_or(false),
        last_n: last_n(fields)?,
    })
}

fn setting(fields: Fields<'_>) -> Result<LineSetting, FieldError> {
    for ignored in ["audio_level_average", "audio_active_packets"] {
        fields.positive(ignored)?;
    }
    Ok(LineSetting {
        mid: text(fields, "mid")?,
        send: fields.boolean("send")?,
        layers: layers(fields)?,
    })
}

fn layers(fields: Fields<'_>) -> Result<LayerRequest, FieldError> {
    Ok(LayerRequest {
        substream: fields.layer("substream")?,
        temporal: fields.layer("temporal")?,
        fallback: fields.positive("fallback")?,
        spatial_layer: fields.layer("spatial_layer")?,
        temporal_layer: fields.layer("temporal_layer")?,
        priority: priority(fields)?,
        min_delay: fields.integer("min_delay")?,
        max_delay: fields.integer("max_delay")?,
    })
}

fn priority(fields: Fields<'_>) -> Result<Option<Priority>, FieldError> {
    let Some(word) = fields.string("priority")? else {
        return Ok(None);
    };
    let wanted = "very-low, low, medium or high";
    let known = Priority::from_name(word);
    let known = known.ok_or_else(|| FieldError::wrong_type("priority", wanted))?;
    Ok(Some(known))
}
