//! An HTTP server that does as the test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A request, with the names of its headers in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A server on a port of its own; its threads end with the test process.
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// What a server makes of a request.
type Answer = dyn Fn(&Request) -> Option<(String, String)> + Send + Sync;

impl Server {
    /// Answers each request with what `answer` makes of it: a status line and headers, and a body. `None`: never.
    pub(crate) fn start(
        answer: impl Fn(&Request) -> Option<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(answer, |stream, seen, answer| serve(stream, seen, answer))
    }

    /// With TLS; the certificate for `localhost` comes back in PEM, to be trusted.
    pub(crate) fn start_tls(
        answer: impl Fn(&Request) -> Option<(String, String)> + Send + Sync + 'static,
    ) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let server = Self::listen(answer, move |stream, seen, answer| {
            let connection = ServerConnection::new(config.clone()).unwrap();
            serve(StreamOwned::new(connection, stream), seen, answer);
        });
        (server, made.cert.pem())
    }

    fn listen(
        answer: impl Fn(&Request) -> Option<(String, String)> + Send + Sync + 'static,
        serve: impl Fn(TcpStream, &Mutex<Vec<Request>>, &Answer) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer, serve) = (requests.clone(), Arc::new(answer), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer, serve) = (seen.clone(), answer.clone(), serve.clone());
                thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
            }
        });
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: impl Read + Write, seen: &Mutex<Vec<Request>>, answer: &Answer) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        seen.lock().unwrap().push(request.clone());
        let Some((head, body)) = answer(&request) else {
            thread::park();
            continue;
        };
        let response = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        // The client may have gone.
        let _ = stream.get_mut().write_all(response.as_bytes());
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let split =
        |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<_> = lines[1..].iter().filter_map(split).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line: lines[0].clone(), headers, body: String::from_utf8(body).ok()? })
}
