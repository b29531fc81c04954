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
}

/// Named commands.
const KNOWN: [(&str, &str); 2] = [
    ("portunus", "portunus --config {dir}/portunus.toml"),
    ("debian-janus", "janus --configs-folder {dir}/janus"),
];
const URL: &str = "ws://{ip}:8188/";

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
    #[error("--url {0}=…: there is no --server {0}=…")]
    NoServer(String),
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

/// Joins servers and their URLs.
pub(super) fn servers(commands: &[Named], urls: &[Named]) -> Result<Vec<ServerSpec>, SpecError> {
    let mut servers: Vec<ServerSpec> = Vec::new();
    for Named { name, value } in commands {
        if servers.iter().any(|server| server.name == *name) {
            return Err(SpecError::Twice(name.clone()));
        }
        let known = KNOWN.iter().find(|(known, _)| known == value);
        let command = known.map_or(value.as_str(), |(_, command)| command);
        let words = shlex::split(command).filter(|words| !words.is_empty());
        servers.push(ServerSpec {
            name: name.clone(),
            command: words.ok_or_else(|| SpecError::Quotes(name.clone()))?,
            url: URL.to_owned(),
        });
    }
    for Named { name, value } in urls {
        let server = servers.iter_mut().find(|server| server.name == *name);
        let server = server.ok_or_else(|| SpecError::NoServer(name.clone()))?;
        let example = IpAddr::from([192, 0, 2, 1]).to_string();
        listening_at(&value.replace("{ip}", &example))?;
        server.url.clone_from(value);
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
        let servers = servers(&commands, &named(&["mine=http://{ip}:8088/janus"])).unwrap();
        assert_eq!(servers[0].to_text(), "janus --configs-folder {dir}/janus");
        assert_eq!(servers[0].url, "ws://{ip}:8188/");
        assert_eq!(servers[1].command, ["./server", "--at", "{ip} 1"]);
        assert_eq!(servers[1].url, "http://{ip}:8088/janus");
    }

    #[test]
    fn mistakes_are_named() {
        for wrong in ["janus", "=x", "a=", "a b=x", "a/b=x"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
        let twice = servers(&named(&["a=x", "a=y"]), &[]);
        assert_eq!(twice, Err(SpecError::Twice("a".into())));
        let quotes = servers(&named(&["a=x 'y"]), &[]);
        assert_eq!(quotes, Err(SpecError::Quotes("a".into())));
        let none = servers(&named(&["a=x"]), &named(&["b=ws://{ip}/"]));
        assert_eq!(none, Err(SpecError::NoServer("b".into())));
        for url in ["{ip}:1", "ftp://{ip}/", "ws://name:1/", "ws://{ip}:99999/"] {
            let text = format!("a={url}");
            let wrong = servers(&named(&["a=x"]), &named(&[&text]));
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
