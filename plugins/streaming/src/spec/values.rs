//! Values of options: how they are read from members, and written as JSON.

use std::net::Ipv4Addr;

use portunus_core::Fields;
use portunus_resources::Place;
use serde_json::Value;

use super::SpecProblem;
use super::payload_types::is_payload_type;

/// The value of an option. `None` leaves it as it is.
pub(super) type Read<T> = Result<Option<T>, SpecProblem>;

/// Longer than any of the times means, and far from overflow: a day in seconds.
const LONGEST: u64 = 86_400;

/// Reads a text. An empty text removes the value.
pub(super) fn clearable(fields: Fields<'_>, name: &str) -> Read<Option<String>> {
    let text = fields.member::<String>(name)?;
    Ok(text.map(|text| Some(text).filter(|text| !text.is_empty())))
}

/// Reads a string, which may be empty.
pub(super) fn any_text(fields: Fields<'_>, name: &str) -> Read<String> {
    Ok(fields.member(name)?)
}

/// Reads a boolean that may be absent.
pub(super) fn choice(fields: Fields<'_>, name: &str) -> Read<Option<bool>> {
    Ok(fields.member(name)?.map(Some))
}

/// Reads a number of at most 65,535.
pub(super) fn number16(fields: Fields<'_>, name: &str) -> Read<u16> {
    number(fields, name, u16::MAX)
}

/// Reads a number of at most 2³² - 1.
pub(super) fn number32(fields: Fields<'_>, name: &str) -> Read<u32> {
    number(fields, name, u32::MAX)
}

fn number<T: TryFrom<u64> + Into<u64>>(fields: Fields<'_>, name: &str, most: T) -> Read<T> {
    let number = fields.member::<u64>(name)?.map(T::try_from).transpose();
    let reason = || format!("expected at most {}", most.into());
    number.map_err(|_| SpecProblem::cannot_create(name, reason()))
}

/// Reads a time in seconds, at most a day. 0 counts as absent.
pub(super) fn seconds(fields: Fields<'_>, name: &str) -> Read<u64> {
    match fields.member(name)? {
        Some(seconds) if seconds > LONGEST => {
            let reason = format!("expected at most {LONGEST} seconds");
            Err(SpecProblem::element(name, reason))
        }
        seconds => Ok(seconds.filter(|seconds| *seconds > 0)),
    }
}

/// Reads a UDP port.
pub(super) fn port(fields: Fields<'_>, name: &str) -> Read<u16> {
    let Some(port) = fields.member::<u64>(name)? else {
        return Ok(None);
    };
    let wrong = |_| SpecProblem::element(name, format!("expected 0 to 65535, got {port}"));
    u16::try_from(port).map(Some).map_err(wrong)
}

/// Reads a UDP port that may be absent.
pub(super) fn optional_port(fields: Fields<'_>, name: &str) -> Read<Option<u16>> {
    Ok(port(fields, name)?.map(Some))
}

/// Reads a payload type.
pub(super) fn payload_type(fields: Fields<'_>, name: &str) -> Read<Option<u8>> {
    let Some(pt) = fields.member::<u64>(name)? else {
        return Ok(None);
    };
    let good = u8::try_from(pt).ok().filter(|pt| is_payload_type(*pt));
    let reason = || format!("expected 0 to 63 or 96 to 127, got {pt}");
    let wrong = || SpecProblem::element(name, reason());
    good.map(|pt| Some(Some(pt))).ok_or_else(wrong)
}

/// Reads a multicast group.
pub(super) fn multicast(fields: Fields<'_>, name: &str) -> Read<Option<Ipv4Addr>> {
    let Some(text) = fields.text(name)? else {
        return Ok(None);
    };
    let group = text.parse().ok().filter(Ipv4Addr::is_multicast);
    let reason = || format!("{text} is not an IPv4 multicast group");
    let wrong = || SpecProblem::cannot_create(name, reason());
    group.map(|group| Some(Some(group))).ok_or_else(wrong)
}

pub(super) fn multicast_text(group: &Option<Ipv4Addr>) -> Value {
    group.map(|group| group.to_string()).into()
}

/// Writes a number other than 0.
pub(super) fn above_0<T: Copy + Into<u64>>(number: &T) -> Value {
    Some((*number).into()).filter(|number| *number > 0).into()
}

/// Returns the place of a member that is ignored, or read with another one.
pub(super) const fn ignored<O>() -> Place<O, SpecProblem> {
    Place {
        read: |_, _, _| Ok(()),
        write: |_| Value::Null,
    }
}
