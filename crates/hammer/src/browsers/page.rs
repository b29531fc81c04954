//! The page that browsers open, served on the loopback interface, where browsers let pages use
//! microphone and camera without TLS.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::BrowserError;

const HTML: &str = include_str!("page.html");

/// A server of the page, which ends with this value.
#[derive(Debug)]
pub(crate) struct Page {
    at: SocketAddr,
    serving: JoinHandle<()>,
}

impl Page {
    /// Starts to serve.
    pub(crate) async fn serve() -> Result<Self, BrowserError> {
        let bind = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = bind.map_err(BrowserError::Page)?;
        let at = listener.local_addr().map_err(BrowserError::Page)?;
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // The request is short, and each gets the page.
                    let mut request = [0; 4_096];
                    let _ = stream.read(&mut request).await;
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\n\
                         content-length: {}\r\nconnection: close\r\n\r\n",
                        HTML.len()
                    );
                    let _ = stream.write_all((head + HTML).as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Ok(Self { at, serving })
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.at)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
