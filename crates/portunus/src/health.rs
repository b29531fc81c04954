//! `portunus health`: asks the running server whether it is alive or ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use portunus_api::HttpConfig;
use reqwest::StatusCode;
use tokio_rustls::rustls;

use crate::config::{Config, ConfigError};
use crate::exit_status::WRONG_USE;
use crate::source;

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The exit status when the server does not answer, or is unhealthy.
const UNHEALTHY: u8 = 1;

/// The options of `portunus health`.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// The server's configuration, which says where it listens [default: as for the server]
    #[arg(short, long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// Ask whether the server takes new clients, too: it does not while it is drained or overloaded
    #[arg(short, long)]
    pub(crate) ready: bool,
}

impl Health {
    /// Reads the configuration of the server.
    pub(crate) fn configuration(&self) -> Result<Config, ConfigError> {
        source::load(source::file(&self.config).as_deref())
    }
}

/// Asks once. Exit status 0 means yes.
pub(crate) fn run(options: &Health) -> ExitCode {
    let config = match options.configuration() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(WRONG_USE);
        }
    };
    let path = match options.ready {
        true => "readyz",
        false => "livez",
    };
    let Some(url) = url(&config.api.http, path) else {
        eprintln!(
            "portunus: HTTP is off. Set http.metrics_bind, such as \"127.0.0.1:9100\": the sign of life is there, too"
        );
        return ExitCode::from(WRONG_USE);
    };
    match ask(&url) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("portunus: {url}: {error}");
            ExitCode::from(UNHEALTHY)
        }
    }
}

/// Returns the URL of one of the server's own paths, such as `livez`, as seen from this machine.
pub(crate) fn url(http: &HttpConfig, path: &str) -> Option<String> {
    if http.enabled {
        return Some(at("http", local(http, http.port), path));
    }
    if let Some(own) = http.metrics_bind.filter(|_| http.metrics) {
        return Some(at("http", own, path));
    }
    let secure = local(http, http.https_port);
    http.https.then(|| at("https", secure, path))
}

/// Returns a URL at an address that the server listens on.
pub(crate) fn at(scheme: &str, bound: SocketAddr, path: &str) -> String {
    let address = SocketAddr::new(reachable(bound.ip()), bound.port());
    format!("{scheme}://{address}/{path}")
}

/// Returns the address by which this machine reaches a port of HTTP.
pub(crate) fn local(http: &HttpConfig, port: u16) -> SocketAddr {
    let ip = http.bind.first().copied();
    let ip = ip.map_or(Ipv4Addr::LOCALHOST.into(), reachable);
    SocketAddr::new(ip, port)
}

/// Returns the address to connect to for an address that a server listens on.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// The server's response.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    text: String,
}

impl Answer {
    /// Returns the text of a positive response, or the reason of a negative one.
    pub(crate) fn succeeded(self) -> Result<String, String> {
        match self.status.is_success() {
            true => Ok(self.text),
            false => Err(format!("{}: {}", self.status, self.text.trim_end())),
        }
    }
}

/// Returns the text of a positive response, or the reason why there is none.
fn ask(url: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // Another provider may be installed already; any will do.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    runtime.block_on(get(url))?.succeeded()
}

/// Fetches a page of the server that runs on this machine.
pub(crate) async fn get(url: &str) -> Result<Answer, String> {
    exchange(client()?.get(url)).await
}

/// Sends a request as JSON to the server that runs on this machine. Returns the response's text.
pub(crate) async fn post(url: &str, body: String) -> Result<String, String> {
    // Another provider may be installed already; any will do.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let request = client()?
        .post(url)
        .header("content-type", "application/json");
    exchange(request.body(body)).await?.succeeded()
}

fn client() -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        // The certificate is for the server's name, and the URL has its address.
        .danger_accept_invalid_certs(true);
    builder.build().map_err(|error| causes(&error))
}

async fn exchange(request: reqwest::RequestBuilder) -> Result<Answer, String> {
    let response = request.send().await.map_err(|error| causes(&error))?;
    let status = response.status();
    let text = response.text().await.map_err(|error| causes(&error))?;
    Ok(Answer { status, text })
}

/// Returns the last cause of an error, since the ones before only say that a request failed.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn the_sign_of_life_is_asked_for_where_the_server_listens() {
        let mut http = HttpConfig::default();
        assert_eq!(
            url(&http, "livez").as_deref(),
            Some("http://127.0.0.1:8088/livez")
        );
        http.bind = vec!["::".parse().unwrap()];
        assert_eq!(
            url(&http, "livez").as_deref(),
            Some("http://[::1]:8088/livez")
        );
        http.bind = vec!["192.0.2.1".parse().unwrap()];
        (http.enabled, http.https) = (false, true);
        assert_eq!(
            url(&http, "livez").as_deref(),
            Some("https://192.0.2.1:8089/livez")
        );
        http.metrics_bind = Some("0.0.0.0:9100".parse().unwrap());
        assert_eq!(
            url(&http, "livez").as_deref(),
            Some("http://127.0.0.1:9100/livez")
        );
        (http.https, http.metrics) = (false, false);
        assert_eq!(url(&http, "livez"), None);
    }
}
