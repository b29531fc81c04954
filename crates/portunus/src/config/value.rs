//! The types that values of the configuration have.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use portunus_api::{FileMode, IceServer, UnixKind, WhipAuthorization};
use portunus_core::{Network, RidOrder, StoredToken};
use portunus_streaming::PortRange;
use toml::de::DeValue;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines: a JSON object a line.
    Json,
}

/// A value that can be read from TOML and written as TOML.
pub(crate) trait ConfigValue: Sized {
    /// Reads it; the error says what was expected.
    fn read(value: &DeValue<'_>) -> Result<Self, String>;

    /// Writes it.
    fn show(&self) -> String;
}

impl ConfigValue for bool {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value
            .as_bool()
            .ok_or_else(|| expected("true or false", value))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl ConfigValue for String {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = value
            .as_str()
            .ok_or_else(|| expected("text in quotes", value))?;
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        toml::Value::String(self.clone()).to_string()
    }
}

fn integer(value: &DeValue<'_>) -> Result<i64, String> {
    let wrong = || expected("a whole number", value);
    let number = value.as_integer().ok_or_else(wrong)?;
    i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| wrong())
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl ConfigValue for $t {
            fn read(value: &DeValue<'_>) -> Result<Self, String> {
                let number = integer(value)?;
                <$t>::try_from(number).map_err(|_| {
                    let max = i64::try_from(<$t>::MAX).unwrap_or(i64::MAX);
                    format!("expected a whole number from 0 to {max}, got {number}")
                })
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

integers!(u16, u32, u64, usize);

/// A number of seconds.
impl ConfigValue for Duration {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let number = integer(value)?;
        // A year is more than any of our times means; it keeps arithmetic far from overflow.
        u32::try_from(number)
            .ok()
            .filter(|seconds| *seconds <= 366 * 86_400)
            .map(|seconds| Duration::from_secs(seconds.into()))
            .ok_or_else(|| format!("expected seconds from 0 to {}, got {number}", 366 * 86_400))
    }

    fn show(&self) -> String {
        self.as_secs().to_string()
    }
}

impl ConfigValue for IpAddr {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let wrong = || expected("an IP address in quotes", value);
        value
            .as_str()
            .ok_or_else(wrong)?
            .parse()
            .map_err(|_| wrong())
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// Empty text is none.
impl ConfigValue for Option<SocketAddr> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let wrong = || expected("an address with a port such as \"127.0.0.1:9100\"", value);
        let text = value.as_str().ok_or_else(wrong)?;
        let some = (!text.is_empty()).then_some(text);
        some.map(|text| text.parse().map_err(|_| wrong()))
            .transpose()
    }

    fn show(&self) -> String {
        let text = self.map(|address| address.to_string());
        text.unwrap_or_default().show()
    }
}

impl ConfigValue for Network {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = value.as_str();
        text.ok_or_else(|| expected("a network in quotes such as \"192.0.2.0/24\"", value))?
            .parse()
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl ConfigValue for PathBuf {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let path = value.as_str().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| expected("a path in quotes", value))?;
        Ok(path.into())
    }

    fn show(&self) -> String {
        self.to_string_lossy().into_owned().show()
    }
}

/// Empty text is none.
impl ConfigValue for Option<PathBuf> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let path = value
            .as_str()
            .ok_or_else(|| expected("a path in quotes", value))?;
        Ok((!path.is_empty()).then(|| path.into()))
    }

    fn show(&self) -> String {
        let path = self.as_ref().map(|path| path.to_string_lossy());
        path.unwrap_or_default().into_owned().show()
    }
}

/// Empty text is none.
impl ConfigValue for Option<String> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = String::read(value)?;
        Ok((!text.is_empty()).then_some(text))
    }

    fn show(&self) -> String {
        self.clone().unwrap_or_default().show()
    }
}

impl<T: ConfigValue> ConfigValue for Vec<T> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let list = value
            .as_array()
            .ok_or_else(|| expected("a list in [ ]", value))?;
        list.iter().map(|item| T::read(item.get_ref())).collect()
    }

    fn show(&self) -> String {
        let items: Vec<_> = self.iter().map(T::show).collect();
        format!("[{}]", items.join(", "))
    }
}

impl ConfigValue for UnixKind {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some("seqpacket") => Ok(UnixKind::Seqpacket),
            Some("datagram") => Ok(UnixKind::Datagram),
            _ => Err(expected("\"seqpacket\" or \"datagram\"", value)),
        }
    }

    fn show(&self) -> String {
        match self {
            UnixKind::Seqpacket => "\"seqpacket\"".into(),
            UnixKind::Datagram => "\"datagram\"".into(),
        }
    }
}

/// A file's permissions, written in octal as text ("660").
impl ConfigValue for FileMode {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let wrong = || expected("octal permissions in quotes such as \"660\"", value);
        let mode = u32::from_str_radix(value.as_str().ok_or_else(wrong)?, 8).ok();
        mode.filter(|mode| *mode <= 0o777)
            .map(FileMode)
            .ok_or_else(wrong)
    }

    fn show(&self) -> String {
        format!("\"{:o}\"", self.0)
    }
}

impl ConfigValue for WhipAuthorization {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some("api") => Ok(WhipAuthorization::Api),
            Some("plugin") => Ok(WhipAuthorization::Plugin),
            _ => Err(expected("\"api\" or \"plugin\"", value)),
        }
    }

    fn show(&self) -> String {
        match self {
            WhipAuthorization::Api => "\"api\"".into(),
            WhipAuthorization::Plugin => "\"plugin\"".into(),
        }
    }
}

/// `{ url = "turn:…", username = "…", credential = "…" }`; STUN servers have a URL only.
impl ConfigValue for IceServer {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let form = "{ url = \"turn:…\", username = \"…\", credential = \"…\" }";
        let table = value.as_table().ok_or_else(|| expected(form, value))?;
        let mut server = Self {
            url: String::new(),
            username: None,
            credential: None,
        };
        for (name, value) in table {
            let text = visible(value.get_ref())?;
            match name.get_ref().as_ref() {
                "url" => server.url = text,
                "username" => server.username = Some(text),
                "credential" => server.credential = Some(text),
                other => return Err(format!("expected {form}, got the key {other:?}")),
            }
        }
        let scheme = server.url.split_once(':').map(|(scheme, _)| scheme);
        let turn = match scheme {
            Some("stun" | "stuns") => false,
            Some("turn" | "turns") => true,
            _ => {
                return Err(format!(
                    "expected a URL that starts with stun:, stuns:, turn: or turns:, got {:?}",
                    server.url
                ));
            }
        };
        match (turn, server.username.is_some(), server.credential.is_some()) {
            (true, true, true) | (false, false, false) => Ok(server),
            (true, ..) => Err("a TURN server needs a username and a credential".into()),
            (false, ..) => Err("a STUN server has no username and no credential".into()),
        }
    }

    fn show(&self) -> String {
        let mut text = format!("{{ url = {}", self.url.show());
        if let (Some(username), Some(credential)) = (&self.username, &self.credential) {
            let (username, credential) = (username.show(), credential.show());
            text.push_str(&format!(
                ", username = {username}, credential = {credential}"
            ));
        }
        text + " }"
    }
}

/// Text that can stand in a header.
fn visible(value: &DeValue<'_>) -> Result<String, String> {
    let text = String::read(value)?;
    match !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>')
    {
        true => Ok(text),
        false => Err(expected("visible ASCII characters without < and >", value)),
    }
}

impl ConfigValue for LogFormat {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some("text") => Ok(LogFormat::Text),
            Some("json") => Ok(LogFormat::Json),
            _ => Err(expected("\"text\" or \"json\"", value)),
        }
    }

    fn show(&self) -> String {
        match self {
            LogFormat::Text => "\"text\"".into(),
            LogFormat::Json => "\"json\"".into(),
        }
    }
}

impl ConfigValue for RidOrder {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value.as_str() {
            Some("hml") => Ok(RidOrder::Hml),
            Some("lmh") => Ok(RidOrder::Lmh),
            _ => Err(expected("\"hml\" or \"lmh\"", value)),
        }
    }

    fn show(&self) -> String {
        match self {
            RidOrder::Hml => "\"hml\"".into(),
            RidOrder::Lmh => "\"lmh\"".into(),
        }
    }
}

impl ConfigValue for PortRange {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let wrong = || expected("ports in quotes such as \"10000-60000\"", value);
        value.as_str().and_then(PortRange::parse).ok_or_else(wrong)
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// `{ token = "…", plugins = ["…"] }`; no plugins means all.
impl ConfigValue for StoredToken {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let form = "{ token = \"…\", plugins = [\"…\"] }";
        let table = value.as_table().ok_or_else(|| expected(form, value))?;
        let mut token = None;
        let mut plugins = Vec::new();
        for (name, value) in table {
            match name.get_ref().as_ref() {
                "token" => token = Some(String::read(value.get_ref())?),
                "plugins" => plugins = Vec::read(value.get_ref())?,
                other => return Err(format!("expected {form}, got the key {other:?}")),
            }
        }
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| format!("expected {form}, got one without a token"))?;
        Ok(Self {
            token,
            plugins,
            rights: Vec::new(),
        })
    }

    fn show(&self) -> String {
        let (token, plugins) = (self.token.show(), self.plugins.show());
        format!("{{ token = {token}, plugins = {plugins} }}")
    }
}

/// The error's text: what was expected, and what there is.
pub(crate) fn expected(what: &str, got: &DeValue<'_>) -> String {
    let got = match got {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a section".into(),
    };
    format!("expected {what}, got {got}")
}
