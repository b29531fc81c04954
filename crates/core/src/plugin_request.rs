//! The requests of a plugin as a type: how each is answered, and which right it needs.

use std::fmt::Debug;

use crate::{Fields, Right, Rights, Untrusted};

/// The requests of a plugin. [`crate::requests!`] makes the enum.
pub trait PluginRequest: Copy + Debug + 'static {
    /// All requests.
    const ALL: &'static [Self];

    /// The names of the request, in lower case.
    fn names(self) -> &'static [&'static str];

    /// How it is answered.
    fn answered(self) -> Answered;

    /// The right that it needs.
    fn needs(self) -> Needs;

    /// Whether it begins something new for its client: see
    /// [`Plugin::begins`](crate::Plugin::begins).
    fn begins(self) -> bool;
}

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// By the reply itself.
    Reply,
    /// By an event after the `ack`.
    Event,
}

/// The right that a request needs.
#[derive(Debug, Clone, Copy)]
pub enum Needs {
    /// No right: the request has no effect beyond the call or the room.
    Nothing,
    /// This right in all cases.
    Right(Right),
    /// The rights that this returns for the members of the request. Members of a wrong type need no
    /// right, since such a request is refused.
    Depends(fn(Fields<'_>) -> Rights),
}

impl Needs {
    /// Returns the rights that a request with these members needs.
    pub fn of(self, fields: Fields<'_>) -> Rights {
        match self {
            Needs::Nothing => Rights::NONE,
            Needs::Right(right) => right.into(),
            Needs::Depends(needs) => needs(fields),
        }
    }
}

/// A request named by a client. The plugin gets it only by [`Asked::permit`], which checks its
/// right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<R>(R);

impl<R: PluginRequest> Asked<R> {
    /// Returns the request with this name, in upper or lower case, or `None` if there is no such
    /// request.
    pub fn named(name: &str) -> Option<Self> {
        let is_named = |request: &&R| {
            let mut names = request.names().iter();
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        R::ALL.iter().find(is_named).copied().map(Asked)
    }

    /// The request that the plugin has without a name.
    pub fn unnamed(request: R) -> Self {
        Asked(request)
    }

    /// Returns how it is answered.
    pub fn answered(self) -> Answered {
        self.0.answered()
    }

    /// Whether it begins something new for its client, for
    /// [`Plugin::begins`](crate::Plugin::begins).
    pub fn begins(self) -> bool {
        self.0.begins()
    }

    /// Returns the request if `rights` contains the rights that it needs with these members.
    pub fn permit(self, fields: Fields<'_>, rights: Rights) -> Result<R, Untrusted> {
        rights.check(self.0.needs().of(fields))?;
        Ok(self.0)
    }
}

/// Declares the requests of a plugin: an enum that implements [`PluginRequest`]. A variant has the
/// names of the request, how it is answered ([`Answered`]), and the right that it needs
/// ([`Needs`]). The word `Begins` marks a request that begins something new for its client
/// ([`Plugin::begins`](crate::Plugin::begins)).
///
/// ```
/// use portunus_core::{Right, recording, requests};
///
/// requests! {
///     /// What clients ask for.
///     pub enum Request {
///         List = "list": Reply, Nothing;
///         Join = "join": Event, Nothing, Begins;
///         Forward = "rtp_forward" | "forward": Reply, Right(Right::Forward);
///         Configure = "configure": Event, Depends(recording);
///     }
/// }
/// ```
#[macro_export]
macro_rules! requests {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $Request:ident {
            $(
                $(#[$variant_meta:meta])*
                $Variant:ident = $name:literal $(| $alias:literal)*:
                    $answered:ident, $needs:ident $(($needed:expr))? $(, $begins:ident)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $Request {
            $(
                #[doc = concat!("`", $name, "`")]
                $(#[$variant_meta])*
                $Variant,
            )*
        }

        impl $crate::PluginRequest for $Request {
            const ALL: &'static [Self] = &[$(Self::$Variant),*];

            fn names(self) -> &'static [&'static str] {
                match self {
                    $(Self::$Variant => &[$name $(, $alias)*],)*
                }
            }

            fn answered(self) -> $crate::Answered {
                match self {
                    $(Self::$Variant => $crate::Answered::$answered,)*
                }
            }

            fn needs(self) -> $crate::Needs {
                match self {
                    $(Self::$Variant => $crate::Needs::$needs $(($needed))?,)*
                }
            }

            fn begins(self) -> bool {
                match self {
                    $(Self::$Variant => $crate::requests!(@ $($begins)?),)*
                }
            }
        }
    };
    (@) => { false };
    (@ Begins) => { true };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::{Value, json};

    use super::*;
    use crate::recording;

    requests! {
        enum Request {
            Talk = "talk": Reply, Nothing, Begins;
            Forward = "rtp_forward" | "forward": Reply, Right(Right::Forward);
            Configure = "configure": Event, Depends(recording);
        }
    }

    fn permit(name: &str, members: Value, rights: Rights) -> Result<Request, Right> {
        let asked = Asked::<Request>::named(name).unwrap();
        let permitted = asked.permit(Fields(members.as_object().unwrap()), rights);
        permitted.map_err(|Untrusted(right)| right)
    }

    #[test]
    fn a_request_is_found_by_its_names() {
        let named = |name| Asked::<Request>::named(name).map(|asked| asked.0);
        assert_eq!(named("talk"), Some(Request::Talk));
        assert_eq!(named("RTP_Forward"), Some(Request::Forward));
        assert_eq!(named("forward"), Some(Request::Forward));
        assert_eq!(named("talks"), None);
        assert_eq!(named(""), None);
        let answered = |name| Asked::<Request>::named(name).unwrap().answered();
        assert_eq!(answered("talk"), Answered::Reply);
        assert_eq!(answered("configure"), Answered::Event);
        let begins = |name| Asked::<Request>::named(name).unwrap().begins();
        assert!(begins("talk") && !begins("configure"));
    }

    #[test]
    fn a_request_needs_what_it_says() {
        let only = |right: Right| Rights::from(right);
        assert_eq!(permit("talk", json!({}), Rights::NONE), Ok(Request::Talk));
        let refused = permit("forward", json!({}), only(Right::Record));
        assert_eq!(refused, Err(Right::Forward));
        let permitted = permit("forward", json!({}), only(Right::Forward));
        assert_eq!(permitted, Ok(Request::Forward));
        for (members, needs) in [
            (json!({}), false),
            (json!({ "record": false }), false),
            (json!({ "record": "yes" }), false),
            (json!({ "record": true }), true),
            (json!({ "record": true, "filename": "a" }), true),
            (json!({ "filename": "a" }), false),
        ] {
            let refused = permit("configure", members.clone(), only(Right::Forward)).is_err();
            assert_eq!(refused, needs, "{members}");
            assert!(permit("configure", members, only(Right::Record)).is_ok());
        }
    }
}
