//! The resources of a plugin, and the requests about them.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::{Fields, PluginCounter, Rights, equal_in_constant_time, with_admin_key};

use tokio::sync::watch;

use crate::ended::Ended;
use crate::guesses::Guesses;
use crate::registry::Registry;
use crate::waiting::Waiting;
use crate::{
    Guessing, Id, Ids, Limits, Maker, Refusal, Reservation, Resource, ResourceKeys, Saved,
    SavedError, check_secret,
};

/// The members that open a single resource.
const OPENERS: [&str; 3] = ["pin", "secret", "token"];
/// The member that opens all.
const ADMIN_KEY: &str = "admin_key";

/// All resources of a plugin.
#[derive(Debug)]
pub struct Resources<R: Resource> {
    ids: Ids,
    admin_key: Option<String>,
    registry: Arc<Registry<R>>,
    saved: Option<Arc<Saved<R::Written>>>,
    guesses: Guesses,
    waiting: Waiting<R>,
    ended: Ended,
}

impl<R: Resource> Resources<R> {
    /// Returns the resources for `keys`, without any yet, and those to make at the start: the
    /// permanent ones, and the `configured` ones that the file of permanent ones does not override.
    pub fn start(
        keys: ResourceKeys,
        configured: Vec<R::Written>,
    ) -> Result<(Self, Vec<R::Written>), SavedError> {
        let (saved, first) = match keys.save {
            Some(path) => {
                let (saved, first) = Saved::open(path, keys.ids, configured)?;
                (Some(Arc::new(saved)), first)
            }
            None => (None, configured),
        };
        let resources = Resources {
            ids: keys.ids,
            admin_key: keys.admin_key,
            registry: Arc::new(Registry::new(keys.limits)),
            saved,
            guesses: Guesses::new(keys.max_wrong),
            waiting: Waiting::default(),
            ended: Ended::default(),
        };
        Ok((resources, first))
    }

    /// Changes the limits of clients. Present resources stay.
    pub fn set_limits(&self, limits: Limits) {
        self.registry.set_limits(limits);
    }

    /// Checks that a client may show secrets now: after too many wrong ones it has to wait.
    /// Administrators never have to.
    pub(crate) fn may_try(&self, fields: Fields<'_>, maker: Maker) -> Result<(), Guessing> {
        let Maker::Client(client) = maker else {
            return Ok(());
        };
        let key = self.admin_key.as_deref();
        let shown = fields.member::<&str>(ADMIN_KEY).ok().flatten();
        if let Some(shown) = shown.filter(|shown| key.is_some() && !shown.is_empty()) {
            self.guesses.check(client, None)?;
            // Not every request refuses a wrong admin key.
            if check_secret(fields, ADMIN_KEY, key).is_err() {
                self.guesses.note(client, None, &[shown]);
            }
        }
        match OPENERS.iter().any(|name| fields.has(name)) {
            true => self.guesses.check(client, self.tried_on(fields).as_ref()),
            false => Ok(()),
        }
    }

    /// Counts the wrong ones of pin, secret and token in a request, by `is_wrong`. Together they
    /// are one guess.
    pub(crate) fn tried(&self, fields: Fields<'_>, maker: Maker, is_wrong: impl Fn(&str) -> bool) {
        let Maker::Client(client) = maker else { return };
        let wrong = OPENERS.iter().filter(|name| is_wrong(name));
        let shown: Vec<&str> = wrong
            .filter_map(|name| fields.member(name).ok().flatten())
            .collect();
        if !shown.is_empty() {
            self.guesses.note(client, self.tried_on(fields), &shown);
        }
    }

    pub(crate) fn guesses(&self) -> &Guesses {
        &self.guesses
    }

    /// Returns the resource that a request names.
    fn tried_on(&self, fields: Fields<'_>) -> Option<Id> {
        self.ids.read(fields, R::MEMBER).ok().flatten()
    }

    /// Returns the kind of ids.
    pub fn ids(&self) -> Ids {
        self.ids
    }

    /// Returns whether there is an admin key.
    pub fn has_admin_key(&self) -> bool {
        self.admin_key.is_some()
    }

    /// Checks that a request shows the admin key, if there is one.
    pub fn check_admin_key(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        check_secret(fields, ADMIN_KEY, self.admin_key.as_deref())
    }

    /// Returns the rights of a request: `rights`, or all if it shows the admin key.
    pub fn rights(&self, fields: Fields<'_>, rights: Rights) -> Rights {
        with_admin_key(rights, fields, self.admin_key.as_deref())
    }

    /// Returns the owner of a new resource of `maker`: the operator for permanent ones, and for all
    /// if there is an admin key, which was shown.
    pub fn maker(&self, maker: Maker, is_permanent: bool) -> Maker {
        match is_permanent || self.has_admin_key() {
            true => Maker::Operator,
            false => maker,
        }
    }

    /// Reserves the id `wanted`, or a free one.
    pub fn reserve(&self, wanted: Option<Id>, maker: Maker) -> Result<Reservation<R>, Refusal> {
        self.registry.reserve(wanted, self.ids, maker)
    }

    /// Returns whether there is a resource with this id.
    pub fn exists(&self, id: &Id) -> bool {
        self.registry.get(id).is_ok()
    }

    /// Returns the resource with this id. That counts as its use.
    pub fn get(&self, id: &Id) -> Result<Arc<R>, Refusal> {
        self.registry.get_to_use(id)
    }

    /// Returns the resource that a request names. That counts as its use.
    pub fn named(&self, fields: Fields<'_>) -> Result<Arc<R>, Refusal> {
        self.get(&self.ids.required(fields, R::MEMBER)?)
    }

    /// Removes a resource. Fails if it is gone.
    pub fn remove(&self, resource: &Arc<R>) -> Result<(), Refusal> {
        self.registry.remove(resource.id(), resource)
    }

    /// Returns whether this very resource is still there.
    pub fn has(&self, resource: &Arc<R>) -> bool {
        let there = self.registry.get(resource.id());
        there.is_ok_and(|there| Arc::ptr_eq(&there, resource))
    }

    /// Returns all of them, in the order of creation.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.registry.all()
    }

    /// Returns a receiver that sees when resources were made or removed. Changes that follow each
    /// other closely may be seen as one.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.registry.changes()
    }

    /// Makes the operator the owner of a resource that has become permanent.
    pub fn adopt(&self, resource: &Arc<R>) {
        self.registry.adopt(resource.id(), resource);
    }

    /// Returns the numbers of refused creations and of ended unused resources of clients.
    pub fn counters(&self) -> Vec<PluginCounter> {
        let (refused, expired) = self.registry.counts();
        vec![
            PluginCounter {
                name: "refused_creations",
                help: "Creations that were refused to clients because of the limits",
                value: refused,
            },
            PluginCounter {
                name: "ended_unused",
                help: "What clients had made and that ended because it was unused",
                value: expired,
            },
        ]
    }

    /// Returns the resources for the request `list`, in the order of creation. Private ones need
    /// the admin key or an administrator.
    pub fn listed(
        &self,
        fields: Fields<'_>,
        by_administrator: bool,
    ) -> Result<Vec<Arc<R>>, Refusal> {
        let shown = match self.has_admin_key() {
            true => fields.member(ADMIN_KEY)?,
            false => None,
        };
        self.listed_with(shown, by_administrator)
    }

    /// Returns the resources for the request `list`, with an `admin_key` that the plugin has read.
    pub fn listed_with(
        &self,
        admin_key: Option<&str>,
        by_administrator: bool,
    ) -> Result<Vec<Arc<R>>, Refusal> {
        let is_shown = match (&self.admin_key, admin_key) {
            (Some(key), Some(shown)) if !equal_in_constant_time(key, shown) => {
                return Err(Refusal::Wrong(ADMIN_KEY));
            }
            (Some(_), shown) => shown.is_some(),
            (None, _) => false,
        };
        let mut all = self.registry.all();
        all.retain(|resource| is_shown || by_administrator || !resource.is_private());
        Ok(all)
    }

    /// Returns the resource with `key` in the configuration.
    pub(crate) fn configured(&self, key: &Id) -> Option<Arc<R>> {
        let mut all = self.registry.of_operator().into_iter();
        all.find(|resource| resource.key() == *key)
    }

    /// Returns the resources that end once they are unused.
    pub(crate) fn waiting(&self) -> &Waiting<R> {
        &self.waiting
    }

    /// Notes that a request has made the resource `id`.
    pub fn note_made(&self, id: &Id) {
        self.ended.made(id);
        self.registry.note_made(id);
    }

    /// Returns whether a request has made the resource `id` in the last `time`.
    pub(crate) fn is_made_within(&self, id: &Id, time: Duration) -> bool {
        self.registry.is_made_within(id, time)
    }

    /// Returns the resources that were ended permanently.
    pub(crate) fn ended(&self) -> &Ended {
        &self.ended
    }

    /// Returns the file of permanent resources, if there is one.
    pub fn saved(&self) -> Option<&Arc<Saved<R::Written>>> {
        self.saved.as_ref()
    }

    /// Returns the file, if a request asks for a permanent change. Fails if there is no file.
    pub fn permanent(
        &self,
        fields: Fields<'_>,
    ) -> Result<Option<&Arc<Saved<R::Written>>>, Refusal> {
        match fields.member("permanent")? {
            Some(true) => self.saved().map(Some).ok_or(Refusal::NoFile),
            Some(false) | None => Ok(None),
        }
    }
}
