//! The servers of the command line.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// `NAME=VALUE` of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    name: String,
    value: String,
}

/// A server to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerSpec {
    pub(super) name: String,
    /// The program and its arguments, with placeholders.
    pub(super) command: Vec<String>,
    /// The URL, with placeholders.
    pub(super) url: String,
    pub(super) api: Api,
}

/// The protocol by which a server is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Janus,
    LiveKit,
}

/// A named command.
struct Known {
    name: &'static str,
    command: &'static str,
    api: Api,
}

/// Named commands.
const KNOWN: [Known; 4] = [
    Known {
        name: "portunus",
        command: "portunus --config {dir}/portunus.toml",
        api: Api::Janus,
    },
    Known {
        name: "portunus-livekit",
        command: "portunus --config {dir}/portunus-livekit.toml",
        api: Api::LiveKit,
    },
    Known {
        name: "debian-janus",
        command: "janus --configs-folder {dir}/janus",
        api: Api::Janus,
    },
    Known {
        name: "livekit-server",
        command: "livekit-server --config {dir}/livekit.yaml",
        api: Api::LiveKit,
    },
];

impl Api {
    /// Returns where a server has it, unless configured.
    const fn url(self) -> &'static str {
        match self {
            Api::Janus => "ws://{ip}:8188/",
            Api::LiveKit => "ws://{ip}:7880",
        }
    }

    /// Returns the option that names a server's URL.
    const fn option(self) -> &'static str {
        match self {
            Api::Janus => "--url",
            Api::LiveKit => "--livekit",
        }
    }
}

/// An error in servers or URLs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Two servers have the same name.
    #[error("two servers have the name {0}")]
    Twice(String),
    /// A command has unbalanced quotes.
    #[error("--server {0}=…: a quotation mark is missing its other one")]
    Quotes(String),
    /// A URL has the name of no server.
    #[error("{0} {1}=…: there is no --server {1}=…")]
    NoServer(&'static str, String),
    /// A URL has no address to wait for.
    #[error("{0}: a URL such as ws://{{ip}}:8188/ is expected")]
    Url(String),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match text.split_once('=') {
            Some((name, value))
                if !value.trim().is_empty() && !name.is_empty() && name.chars().all(allowed) =>
            {
                Ok(Self {
                    name: name.to_owned(),
                    value: value.to_owned(),
                })
            }
            _ => Err(
                "NAME=… is expected, with a name of letters, digits, '-', '_' and '.'".to_owned(),
            ),
        }
    }
}

impl Named {
    /// Returns what stands before the sign.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what stands behind it.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl ServerSpec {
    /// Returns whether its known configuration has a webhook.
    pub(super) fn has_webhook(&self) -> bool {
        self.command
            .iter()
            .any(|word| word.contains("webhook.toml"))
    }

    /// Returns the command in one line.
    pub(super) fn to_text(&self) -> String {
        let words = self
            .command
            .iter()
            .map(|word| match word.contains(char::is_whitespace) {
                true => format!("'{word}'"),
                false => word.clone(),
            });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Returns the further server with this command, which has the Janus API at its usual place.
pub(super) fn beside(command: &str) -> Result<ServerSpec, SpecError> {
    let named = Named {
        name: "beside".to_owned(),
        value: command.to_owned(),
    };
    let mut all = servers(&[named], &[], &[])?;
    all.pop()
        .ok_or_else(|| SpecError::Quotes(command.to_owned()))
}

/// Joins servers and their URLs: those of the Janus API, and those of LiveKit's protocol.
pub(super) fn servers(
    commands: &[Named],
    janus: &[Named],
    livekit: &[Named],
) -> Result<Vec<ServerSpec>, SpecError> {
    let mut servers: Vec<ServerSpec> = Vec::new();
    for Named { name, value } in commands {
        if servers.iter().any(|server| server.name == *name) {
            return Err(SpecError::Twice(name.clone()));
        }
        let known = KNOWN.iter().find(|known| known.name == value);
        let command = known.map_or(value.as_str(), |known| known.command);
        let api = known.map_or(Api::Janus, |known| known.api);
        let words = shlex::split(command).filter(|words| !words.is_empty());
        servers.push(ServerSpec {
            name: name.clone(),
            command: words.ok_or_else(|| SpecError::Quotes(name.clone()))?,
            url: api.url().to_owned(),
            api,
        });
    }
    let janus = janus.iter().map(|named| (Api::Janus, named));
    let livekit = livekit.iter().map(|named| (Api::LiveKit, named));
    for (api, Named { name, value }) in janus.chain(livekit) {
        let server = servers.iter_mut().find(|server| server.name == *name);
        let server = server.ok_or_else(|| SpecError::NoServer(api.option(), name.clone()))?;
        let example = IpAddr::from([192, 0, 2, 1]).to_string();
        listening_at(&value.replace("{ip}", &example))?;
        server.url.clone_from(value);
        server.api = api;
    }
    Ok(servers)
}

/// Returns the address where a server with this URL accepts connections.
pub(super) fn listening_at(url: &str) -> Result<SocketAddr, SpecError> {
    let wrong = || SpecError::Url(url.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let port = match scheme {
        "ws" | "http" => 80,
        "wss" | "https" => 443,
        _ => return Err(wrong()),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let with_port = authority.parse::<SocketAddr>();
    let alone = || {
        authority
            .parse::<IpAddr>()
            .map(|ip| SocketAddr::new(ip, port))
    };
    with_port.or_else(|_| alone()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    fn named(texts: &[&str]) -> Vec<Named> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn known_commands_and_urls_are_filled_in() {
        let commands = named(&["janus=debian-janus", "mine=./server --at '{ip} 1'"]);
        let urls = named(&["mine=http://{ip}:8088/janus"]);
        let servers = servers(&commands, &urls, &[]).unwrap();
        assert_eq!(servers[0].to_text(), "janus --configs-folder {dir}/janus");
        assert_eq!(servers[0].url, "ws://{ip}:8188/");
        assert_eq!(servers[1].command, ["./server", "--at", "{ip} 1"]);
        assert_eq!(servers[1].url, "http://{ip}:8088/janus");
        assert_eq!(servers[1].api, Api::Janus);
    }

    #[test]
    fn servers_of_livekit_are_known_or_named() {
        let commands = named(&[
            "lk=livekit-server",
            "door=portunus-livekit",
            "mine=./server",
        ]);
        let urls = named(&["mine=ws://{ip}:9/"]);
        let servers = servers(&commands, &[], &urls).unwrap();
        assert!(servers.iter().all(|server| server.api == Api::LiveKit));
        let urls: Vec<&str> = servers.iter().map(|server| &*server.url).collect();
        assert_eq!(urls, ["ws://{ip}:7880", "ws://{ip}:7880", "ws://{ip}:9/"]);
    }

    #[test]
    fn mistakes_are_named() {
        for wrong in ["janus", "=x", "a=", "a b=x", "a/b=x"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
        let twice = servers(&named(&["a=x", "a=y"]), &[], &[]);
        assert_eq!(twice, Err(SpecError::Twice("a".into())));
        let quotes = servers(&named(&["a=x 'y"]), &[], &[]);
        assert_eq!(quotes, Err(SpecError::Quotes("a".into())));
        let none = servers(&named(&["a=x"]), &named(&["b=ws://{ip}/"]), &[]);
        assert_eq!(none, Err(SpecError::NoServer("--url", "b".into())));
        for url in ["{ip}:1", "ftp://{ip}/", "ws://name:1/", "ws://{ip}:99999/"] {
            let text = format!("a={url}");
            let wrong = servers(&named(&["a=x"]), &named(&[&text]), &[]);
            assert!(matches!(wrong, Err(SpecError::Url(_))), "{url}");
        }
    }

    #[test]
    fn ports_follow_the_scheme() {
        assert_eq!(listening_at("wss://10.0.0.1/x").unwrap().port(), 443);
        assert_eq!(
            listening_at("http://10.0.0.1:8088/janus").unwrap().port(),
            8088
        );
    }
}
