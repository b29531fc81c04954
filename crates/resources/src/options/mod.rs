//! The options of a room, each declared once.
//!
//! A plugin has one table of the options of its rooms. It serves to read the configuration, the
//! requests `create` and `edit` and the file of permanent rooms, and to write that file and the
//! answer to `list`. The struct with the values does not know the table, and may be of another
//! crate.
//!
//! ```
//! use portunus_core::{FieldError, Fields};
//! use portunus_resources::{Access, Options, Refusal, place};
//!
//! #[derive(Clone, Default)]
//! struct RoomOptions {
//!     description: String,
//!     access: Access,
//!     history: u64,
//! }
//!
//! type Opt = portunus_resources::Opt<RoomOptions>;
//!
//! const OPTIONS: Options<RoomOptions> = Options(&[
//!     Opt::new("description", place!(description)).edited_as("new_description").listed(),
//!     Opt::new("secret", place!(access.secret)).edited_as("new_secret"),
//!     Opt::new("history", place!(history, history, |history| (*history).into())).listed(),
//! ]);
//!
//! /// Reads the number of messages in the history, 0 to 10,000.
//! fn history(fields: Fields<'_>, name: &'static str) -> Result<Option<u64>, Refusal> {
//!     match fields.member(name)? {
//!         Some(history) if history > 10_000 => Err(Refusal::Value(name, "10000 at most")),
//!         history => Ok(history),
//!     }
//! }
//!
//! # fn main() -> Result<(), Refusal> {
//! let body = serde_json::json!({ "description": "Hall", "history": 3 });
//! let room = OPTIONS.read(Fields(body.as_object().unwrap()))?;
//! assert_eq!(serde_json::Value::from(OPTIONS.to_members(&room)), body);
//! # Ok(())
//! # }
//! ```

use std::fmt;

use portunus_core::{FieldError, Fields, Object};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Refusal, RoomProblem};

/// The options that are kept in an `O`. Errors come in the order of the table.
pub struct Options<O: 'static, E: 'static = Refusal>(pub &'static [Opt<O, E>]);

/// An option: the member that it is read from, and its place in `O`.
pub struct Opt<O, E = Refusal> {
    name: &'static str,
    place: Place<O, E>,
    /// Whether it is a key of the configuration too.
    is_configured: bool,
    /// Its member in `edit`.
    edited: Option<&'static str>,
    listed: Option<Listed<O>>,
    /// Whether only those with access to confidential options see it.
    is_confidential: bool,
    /// Makes the error for its absence, if it is required.
    missing: Option<fn(&str) -> E>,
}

/// The member of `list` for an option.
struct Listed<O> {
    name: &'static str,
    is_told: fn(&O) -> bool,
}

/// The place of an option, with the functions that read and write it. [`place!`](crate::place)
/// makes it.
pub struct Place<O, E> {
    /// Reads the value from the member with this name, if it is there.
    pub read: fn(&mut O, Fields<'_>, &'static str) -> Result<(), E>,
    /// Returns the value of the member, or null without a value.
    pub write: fn(&O) -> Value,
}

/// The place of an option: `place!(access.secret)` is a field of an [`OptionValue`].
///
/// `place!(field, read, write)` is a field of any type. `read` gets the [`Fields`] and the member's
/// name, and returns `Ok(None)` to leave the field as it is. `write` makes JSON of a reference to
/// the field. Without `write`, the field is JSON already.
///
/// The compiler has to know the struct at this place: as an argument of `Opt::new`, where `Opt` is
/// an alias with the struct.
#[macro_export]
macro_rules! place {
    ($($field:ident).+) => {
        $crate::Place {
            read: |options, fields, name| {
                Ok($crate::OptionValue::read(&mut options.$($field).+, fields, name)?)
            },
            write: |options| $crate::OptionValue::to_json(&options.$($field).+),
        }
    };
    ($($field:ident).+, $read:expr) => {
        $crate::place!($($field).+, $read, |value| ::std::clone::Clone::clone(value).into())
    };
    ($($field:ident).+, $read:expr, $write:expr) => {
        $crate::Place {
            read: |options, fields, name| {
                if let Some(value) = $read(fields, name)? {
                    options.$($field).+ = value;
                }
                Ok(())
            },
            write: |options| $crate::written(&options.$($field).+, $write),
        }
    };
}

/// Applies `write`. It gives the compiler the type of a closure's argument in
/// [`place!`](crate::place).
#[doc(hidden)]
pub fn written<T: ?Sized>(value: &T, write: impl FnOnce(&T) -> Value) -> Value {
    write(value)
}

impl<O, E> Opt<O, E> {
    /// Returns an option of the configuration and of `create`, at `place`.
    pub const fn new(name: &'static str, place: Place<O, E>) -> Self {
        Opt {
            name,
            place,
            is_configured: true,
            edited: None,
            listed: None,
            is_confidential: false,
            missing: None,
        }
    }

    /// Permits `edit` to change it, by this member.
    #[must_use]
    pub const fn edited_as(mut self, name: &'static str) -> Self {
        self.edited = Some(name);
        self
    }

    /// Adds the option to `list`, as a member of the same name, if it has a value.
    #[must_use]
    pub const fn listed(self) -> Self {
        let name = self.name;
        self.listed_as(name)
    }

    /// Adds the option to `list`, as this member, if it has a value.
    #[must_use]
    pub const fn listed_as(mut self, name: &'static str) -> Self {
        self.listed = Some(Listed {
            name,
            is_told: |_| true,
        });
        self
    }

    /// Adds the option to `list`, as a member of the same name, if `is_told` is true.
    #[must_use]
    pub const fn listed_if(mut self, is_told: fn(&O) -> bool) -> Self {
        self.listed = Some(Listed {
            name: self.name,
            is_told,
        });
        self
    }

    /// Makes the option confidential: only [`Options::shown`] writes it.
    #[must_use]
    pub const fn confidential(mut self) -> Self {
        self.is_confidential = true;
        self
    }

    /// Removes the option from the configuration. Only `create` has it, such as `permanent`.
    #[must_use]
    pub const fn not_configured(mut self) -> Self {
        self.is_configured = false;
        self
    }
}

impl<O, E: From<FieldError>> Opt<O, E> {
    /// Makes the option required, and written even with its default.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.missing = Some(|name| FieldError::Missing(name.to_owned()).into());
        self
    }

    /// Returns an option that has to be a `T` if it is there, and that the plugin ignores or reads
    /// itself.
    pub const fn checked<T: for<'de> Deserialize<'de>>(name: &'static str) -> Self {
        let place = Place {
            read: |_, fields, name| Ok(fields.member::<T>(name).map(drop)?),
            write: |_| Value::Null,
        };
        Opt::new(name, place)
    }
}

impl<O: Clone + Default, E> Options<O, E> {
    /// Reads the options of a new resource. Absent ones have their defaults.
    pub fn read(&self, fields: Fields<'_>) -> Result<O, E> {
        let mut options = O::default();
        self.read_into(&mut options, fields)?;
        Ok(options)
    }

    /// Returns what the options `before` are after the request `edit`.
    pub fn edited(&self, before: &O, fields: Fields<'_>) -> Result<O, E> {
        let mut options = before.clone();
        for option in self.0 {
            if let Some(name) = option.edited {
                (option.place.read)(&mut options, fields, name)?;
            }
        }
        Ok(options)
    }

    /// Returns the first error of [`Options::read`] for which `is_first` is true, for a plugin that
    /// looks for one kind of error in all members before another kind.
    pub fn check(&self, fields: Fields<'_>, is_first: impl Fn(&E) -> bool) -> Result<(), E> {
        let names = self.0.iter().map(|option| (option, option.name));
        check(names, fields, is_first)
    }

    /// Returns the first such error of [`Options::edited`].
    pub fn check_edited(&self, fields: Fields<'_>, is_first: impl Fn(&E) -> bool) -> Result<(), E> {
        let names = self.0.iter();
        let names = names.filter_map(|option| Some((option, option.edited?)));
        check(names, fields, is_first)
    }

    /// Returns the members from which [`Options::read`] makes the same options: those without their
    /// defaults.
    pub fn to_members(&self, options: &O) -> Map<String, Value> {
        self.written(options, &O::default())
    }
}

impl<O, E> Options<O, E> {
    /// Reads the options into `options`. Absent ones stay as they are.
    pub fn read_into(&self, options: &mut O, fields: Fields<'_>) -> Result<(), E> {
        self.0.iter().try_for_each(|option| match option.missing {
            Some(missing) if !fields.has(option.name) => Err(missing(option.name)),
            Some(_) | None => (option.place.read)(options, fields, option.name),
        })
    }

    /// Returns the members from which [`Options::read_into`] makes `options` out of `default`.
    pub fn written(&self, options: &O, default: &O) -> Map<String, Value> {
        let own = self.0.iter().filter_map(|option| {
            let value = (option.place.write)(options);
            let is_own = option.missing.is_some() || value != (option.place.write)(default);
            is_own.then(|| (option.name.to_owned(), value))
        });
        own.collect()
    }

    /// Returns the members of `list`, for everybody.
    pub fn listed(&self, options: &O) -> Object {
        self.shown(options, false)
    }

    /// Returns the members of all options, with or without the confidential ones.
    pub fn shown(&self, options: &O, with_confidential: bool) -> Object {
        let told = self.0.iter();
        let told = told.filter(|option| with_confidential || !option.is_confidential);
        told.fold(Object::new(), |shown, option| match &option.listed {
            Some(listed) if (listed.is_told)(options) => {
                let value = (option.place.write)(options);
                shown.with_some(listed.name, Some(value).filter(|value| !value.is_null()))
            }
            Some(_) | None => shown,
        })
    }

    /// Returns whether `edit` can change the option with this key.
    pub fn is_editable(&self, key: &str) -> bool {
        let mut options = self.0.iter();
        options.any(|option| option.name == key && option.edited.is_some())
    }

    /// Returns the keys of the configuration.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let configured = self.0.iter().filter(|option| option.is_configured);
        configured.map(|option| option.name)
    }

    /// Checks that a section `room` has only its id and the options as keys.
    pub fn check_keys(&self, members: &Map<String, Value>) -> Result<(), RoomProblem> {
        let known: Vec<_> = std::iter::once("room").chain(self.keys()).collect();
        crate::check_keys(members, &known)
    }
}

fn check<'a, O: Default + 'static, E: 'static>(
    mut names: impl Iterator<Item = (&'a Opt<O, E>, &'static str)>,
    fields: Fields<'_>,
    is_first: impl Fn(&E) -> bool,
) -> Result<(), E> {
    let mut scratch = O::default();
    let found = names.find_map(|(option, name)| {
        let error = (option.place.read)(&mut scratch, fields, name).err()?;
        Some(error).filter(&is_first)
    });
    found.map_or(Ok(()), Err)
}

impl<O, E> fmt::Debug for Options<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0).finish()
    }
}

impl<O, E> fmt::Debug for Opt<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opt({})", self.name)
    }
}

impl<O, E> fmt::Debug for Place<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

/// The value of an option. An absent member changes nothing.
pub trait OptionValue {
    /// Reads the value from the member `name`, if it is there.
    fn read(&mut self, fields: Fields<'_>, name: &str) -> Result<(), FieldError>;

    /// Returns the value of the member, or null without a value.
    fn to_json(&self) -> Value;
}

/// A number that does not fit has the wrong type.
macro_rules! plain_values {
    ($($Value:ty)*) => {
        $(
            impl OptionValue for $Value {
                fn read(&mut self, fields: Fields<'_>, name: &str) -> Result<(), FieldError> {
                    *self = fields.member(name)?.unwrap_or(*self);
                    Ok(())
                }

                fn to_json(&self) -> Value {
                    (*self).into()
                }
            }
        )*
    };
}

plain_values! { bool u8 u16 u32 u64 usize }

/// An empty text changes nothing.
impl OptionValue for String {
    fn read(&mut self, fields: Fields<'_>, name: &str) -> Result<(), FieldError> {
        if let Some(text) = fields.text(name)? {
            text.clone_into(self);
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        self.as_str().into()
    }
}

/// An empty text changes nothing.
impl OptionValue for Option<String> {
    fn read(&mut self, fields: Fields<'_>, name: &str) -> Result<(), FieldError> {
        if let Some(text) = fields.text(name)? {
            *self = Some(text.to_owned());
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        self.as_deref().into()
    }
}

#[cfg(test)]
mod tests;
