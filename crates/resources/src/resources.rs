//! What a plugin has of resources, and what its requests do with them.

use std::fmt::Debug;
use std::sync::Arc;

use portunus_core::{Fields, PluginCounter, Rights, equal_in_constant_time, with_admin_key};

use crate::guesses::Guesses;
use crate::registry::Registry;
use crate::reload::Waiting;
use crate::{
    Guessing, Id, Ids, Limits, Maker, Refusal, Reservation, ResourceKeys, Saved, SavedError,
    Written, check_secret,
};

/// The members that open a single resource.
const OPENERS: [&str; 3] = ["pin", "secret", "token"];
/// The member that opens all.
const ADMIN_KEY: &str = "admin_key";

/// What a plugin's resources are: rooms, or mountpoints.
pub trait Resource: Debug + Send + Sync + 'static {
    /// One of them as the configuration describes it.
    type Written: Written;

    /// The member of requests that names one of them, such as `room`.
    const MEMBER: &'static str;

    /// Whether this key of the configuration can change while somebody uses it.
    fn is_editable(_key: &str) -> bool {
        false
    }

    /// Its id.
    fn id(&self) -> &Id;

    /// What the configuration knows it by, see [`Written::key`].
    fn key(&self) -> Id {
        self.id().clone()
    }

    /// Takes the values that are [editable](Resource::is_editable) from `written`, while somebody may use it.
    fn apply(&self, _written: &Self::Written) {}

    /// Whether it is in lists for administrators only.
    fn is_private(&self) -> bool;

    /// Whether somebody uses it now. Requests that name it count by themselves.
    fn is_used(&self) -> bool;

    /// Whether its end would put somebody out.
    fn has_clients(&self) -> bool {
        self.is_used()
    }

    /// Ends it as its destruction by a request does, unless it is used after all, or has ended; gives whether it did.
    fn end_unused(self: Arc<Self>) -> impl Future<Output = bool> + Send;
}

/// All resources of a plugin.
#[derive(Debug)]
pub struct Resources<R: Resource> {
    ids: Ids,
    admin_key: Option<String>,
    registry: Arc<Registry<R>>,
    saved: Option<Arc<Saved<R::Written>>>,
    guesses: Guesses,
    waiting: Waiting<R>,
}

impl<R: Resource> Resources<R> {
    /// Has the resources that `keys` describe. There are none yet; returns those to be made at the start: the `configured` ones as
    /// far as the file of permanent ones does not say otherwise, and those of that file.
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
        };
        Ok((resources, first))
    }

    /// Changes what clients may make. What they have made stays.
    pub fn set_limits(&self, limits: Limits) {
        self.registry.set_limits(limits);
    }

    /// Whether what a request shows is looked at now: after too many wrong ones a client has to wait. Whoever may administer never has.
    pub(crate) fn may_try(&self, fields: Fields<'_>, maker: Maker) -> Result<(), Guessing> {
        let Maker::Client(client) = maker else {
            return Ok(());
        };
        let key = self.admin_key.as_deref();
        let shown = fields.member::<&str>(ADMIN_KEY).ok().flatten();
        if let Some(shown) = shown.filter(|shown| key.is_some() && !shown.is_empty()) {
            self.guesses.check(client, None)?;
            // Not each request says that it was wrong.
            if check_secret(fields, ADMIN_KEY, key).is_err() {
                self.guesses.note(client, None, &[shown]);
            }
        }
        match OPENERS.iter().any(|name| fields.has(name)) {
            true => self.guesses.check(client, self.tried_on(fields).as_ref()),
            false => Ok(()),
        }
    }

    /// Members of a request were wrong, of a pin, a secret and a token: those that `is_wrong` says. All together they are one guess.
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

    /// The resource that a request wants to get into.
    fn tried_on(&self, fields: Fields<'_>) -> Option<Id> {
        self.ids.read(fields, R::MEMBER).ok().flatten()
    }

    /// Which kind of ids they have.
    pub fn ids(&self) -> Ids {
        self.ids
    }

    /// Whether there is an admin key.
    pub fn has_admin_key(&self) -> bool {
        self.admin_key.is_some()
    }

    /// Checks that a request shows the admin key, if there is one.
    pub fn check_admin_key(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        check_secret(fields, ADMIN_KEY, self.admin_key.as_deref())
    }

    /// The rights of somebody who has `rights` and makes a request: all, if it shows the admin key.
    pub fn rights(&self, fields: Fields<'_>, rights: Rights) -> Rights {
        with_admin_key(rights, fields, self.admin_key.as_deref())
    }

    /// Whose a resource counts as that `maker` makes: those for good are the operator's, and so are all where there is an
    /// admin key, which has been shown.
    pub fn maker(&self, maker: Maker, is_permanent: bool) -> Maker {
        match is_permanent || self.has_admin_key() {
            true => Maker::Operator,
            false => maker,
        }
    }

    /// The id that nobody else gets: `wanted`, or a free one if none is wanted.
    pub fn reserve(&self, wanted: Option<Id>, maker: Maker) -> Result<Reservation<R>, Refusal> {
        self.registry.reserve(wanted, self.ids, maker)
    }

    /// Whether there is a resource with this id.
    pub fn exists(&self, id: &Id) -> bool {
        self.registry.get(id).is_ok()
    }

    /// The resource with this id, which is used from now on.
    pub fn get(&self, id: &Id) -> Result<Arc<R>, Refusal> {
        self.registry.get_to_use(id)
    }

    /// The resource that a request names, and which is used by that.
    pub fn named(&self, fields: Fields<'_>) -> Result<Arc<R>, Refusal> {
        self.get(&self.ids.required(fields, R::MEMBER)?)
    }

    /// Forgets a resource; an error if it is gone already.
    pub fn remove(&self, resource: &Arc<R>) -> Result<(), Refusal> {
        self.registry.remove(resource.id(), resource)
    }

    /// Whether this very resource is there still.
    pub fn has(&self, resource: &Arc<R>) -> bool {
        let there = self.registry.get(resource.id());
        there.is_ok_and(|there| Arc::ptr_eq(&there, resource))
    }

    /// All of them, in the order of their creation.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.registry.all()
    }

    /// Makes a resource that of whoever runs the server: it has become permanent.
    pub fn adopt(&self, resource: &Arc<R>) {
        self.registry.adopt(resource.id(), resource);
    }

    /// What was refused to clients because of the limits, and what of theirs ended because it was unused.
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

    /// Those that the request `list` tells of, in the order of their creation: private ones if it shows the admin key, or an
    /// administrator asks.
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

    /// The same where the plugin has read `admin_key`.
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

    /// The resource that the configuration knows by `key`.
    pub(crate) fn configured(&self, key: &Id) -> Option<Arc<R>> {
        let mut all = self.registry.of_operator().into_iter();
        all.find(|resource| resource.key() == *key)
    }

    /// What ends once it is unused, because the configuration says so.
    pub(crate) fn waiting(&self) -> &Waiting<R> {
        &self.waiting
    }

    /// The file of permanent resources, if there is one.
    pub fn saved(&self) -> Option<&Arc<Saved<R::Written>>> {
        self.saved.as_ref()
    }

    /// The file to write to, if a request asks for a change for good; an error if there is none.
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
