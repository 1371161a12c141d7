//! A server for the files of one page: on the loopback interface only, from memory, reading nothing else.

use super::PageFile;
use crate::error::{Error, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A server that is bound but does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    files: Arc<Vec<PageFile>>,
}

/// Longest request head that is read.
const LONGEST_HEAD: usize = 16 * 1024;

impl Server {
    /// Binds to 127.0.0.1; port 0 is any free one.
    ///
    /// # Errors
    /// [`Error::Argument`] when the port is taken.
    pub fn bind(port: u16, files: Vec<PageFile>) -> Result<Server> {
        let fail =
            |e: std::io::Error| Error::argument("--port", format!("{port}: {e}"), "give another, or 0 for a free one");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        Ok(Server { listener, address, files: Arc::new(files) })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Answers until the process ends.
    pub fn run(self) {
        let port = self.address.port();
        for stream in self.listener.incoming().flatten() {
            let files = Arc::clone(&self.files);
            // A browser that goes away is no failure.
            std::thread::spawn(move || _ = answer(stream, &files, port));
        }
    }
}

fn answer(mut stream: TcpStream, files: &[PageFile], port: u16) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    let mut head = Vec::new();
    let mut part = [0u8; 2048];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = stream.read(&mut part)?;
        if n == 0 || head.len() > LONGEST_HEAD {
            return Ok(());
        }
        head.extend_from_slice(&part[..n]);
    }
    let (status, file, is_head) = respond(&String::from_utf8_lossy(&head), files, port);
    let (kind, body) = file.map_or(("text/plain; charset=utf-8", status.as_bytes()), |f| (f.kind(), &f.bytes[..]));
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'self' data: blob:; style-src 'self' 'unsafe-inline'\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )?;
    if !is_head {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// Status, the file to send, and whether only the head is wanted.
fn respond<'a>(head: &str, files: &'a [PageFile], port: u16) -> (&'static str, Option<&'a PageFile>, bool) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = lines
        .filter_map(|l| l.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, v)| v.trim().to_ascii_lowercase());
    // Another site's name that leads here must not read the page.
    let is_own = host.is_some_and(|h| h == format!("127.0.0.1:{port}") || h == format!("localhost:{port}"));
    if !is_own {
        return ("403 Forbidden", None, false);
    }
    if method != "GET" && method != "HEAD" {
        return ("405 Method Not Allowed", None, false);
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let name = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
    match files.iter().find(|f| f.name == name) {
        Some(file) => ("200 OK", Some(file), method == "HEAD"),
        None => ("404 Not Found", None, method == "HEAD"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pages_own_files_and_names_are_served() {
        let files = [PageFile { name: "index.html", bytes: b"page".to_vec() }];
        let ask = |head: &str| respond(head, &files, 8000).0;
        assert_eq!(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n"), "200 OK");
        assert_eq!(ask("GET /index.html?x HTTP/1.1\r\nhost: LOCALHOST:8000\r\n\r\n"), "200 OK");
        assert_eq!(ask("GET /../Cargo.toml HTTP/1.1\r\nHost: localhost:8000\r\n\r\n"), "404 Not Found");
        assert_eq!(ask("POST / HTTP/1.1\r\nHost: localhost:8000\r\n\r\n"), "405 Method Not Allowed");
        assert_eq!(ask("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"), "403 Forbidden");
        assert_eq!(ask("GET / HTTP/1.1\r\n\r\n"), "403 Forbidden");
        assert_eq!(ask(""), "403 Forbidden");
    }

    #[test]
    fn it_answers_on_the_loopback_interface() {
        let server = Server::bind(0, vec![PageFile { name: "index.html", bytes: b"page".to_vec() }]).unwrap();
        assert!(server.address.ip().is_loopback() && server.address.port() > 0);
        let address = server.address;
        std::thread::spawn(move || server.run());
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("\r\n\r\npage"), "{text}");
    }
}
