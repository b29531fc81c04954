//! Checks of the network: name resolution, and this machine's address as a STUN server sees it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use portunus_core::{ApiError, Fields, Object, reflected_address};
use tokio::net::lookup_host;
use tokio::time::timeout;

/// How long a name server or a STUN server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn resolve_address(fields: Fields<'_>) -> Result<Object, ApiError> {
    let name = fields.required_string("address")?;
    let start = Instant::now();
    let ip = resolve(name).await?;
    Ok(Object::new()
        .with("ip", ip.to_string())
        .with("elapsed", elapsed(start)))
}

pub(super) async fn test_stun(fields: Fields<'_>) -> Result<Object, ApiError> {
    let name = fields.required_string("address")?;
    let port = port(fields.required::<u64>("port")?, "port")?;
    let local = fields.positive("localport")?;
    let local = local
        .map(|local| self::port(local, "localport"))
        .transpose()?;
    let start = Instant::now();
    let server = SocketAddr::new(resolve(name).await?, port);
    let failed = |error: std::io::Error| failure(format!("cannot ask {server}: {error}"));
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let local = SocketAddr::new(any, local.unwrap_or(0));
    let public = match timeout(PATIENCE, reflected_address(server, local)).await {
        Ok(seen) => seen.map_err(failed)?.0,
        Err(_) => {
            return Err(failure(format!(
                "no answer from {server} within {PATIENCE:?}"
            )));
        }
    };
    Ok(Object::new()
        .with("public_ip", public.ip().to_canonical().to_string())
        .with("public_port", public.port())
        .with("elapsed", elapsed(start)))
}

async fn resolve(name: &str) -> Result<IpAddr, ApiError> {
    let failed = |why: String| failure(format!("cannot resolve {name:?}: {why}"));
    // The port has no meaning here.
    let found = timeout(PATIENCE, lookup_host((name, 0))).await;
    let found = found.map_err(|_| failed(format!("no answer within {PATIENCE:?}")))?;
    let mut found = found.map_err(|error| failed(error.to_string()))?;
    let first = found
        .next()
        .ok_or_else(|| failed("no address".to_owned()))?;
    Ok(first.ip())
}

fn port(number: u64, name: &str) -> Result<u16, ApiError> {
    u16::try_from(number).map_err(|_| {
        let text = format!("Invalid element type ({name} should be a port number)");
        ApiError::InvalidElement(text)
    })
}

fn failure(text: String) -> ApiError {
    ApiError::Unknown(text)
}

/// Returns the microseconds since `start`.
fn elapsed(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
