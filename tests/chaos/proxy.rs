//! A TCP proxy that behaves like a bad network: it is late, or keeps a connection open and forwards nothing more.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// What a connection of a worker is for; told by the statements that go over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Unknown,
    Fetch,
    Settle,
    Listen,
}

/// What is done to the bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Forward,
    /// Neither direction goes on; both sockets stay open, and nobody is told.
    Drop,
    /// What is asked arrives, what is answered does not.
    SwallowReplies,
    /// Both sockets are closed.
    Cut,
}

/// The proxy; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    accepts: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: AtomicU16,
    latency_ms: AtomicU64,
    links: Mutex<Vec<Arc<Link>>>,
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// One connection.
#[derive(Debug)]
struct Link {
    role: Mutex<Role>,
    fate: watch::Sender<Fate>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepts.abort();
        self.cut();
    }
}

impl Proxy {
    /// Starts a proxy to a port of this machine.
    pub(crate) async fn start(upstream: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            upstream: AtomicU16::new(upstream),
            latency_ms: AtomicU64::default(),
            links: Mutex::default(),
            connections: AtomicUsize::default(),
            requests: AtomicUsize::default(),
        });
        let accepts = tokio::spawn(accept(shared.clone(), listener));
        Self { shared, port, accepts }
    }

    /// The address of a cluster, through the proxy.
    pub(crate) fn url(&self, cluster: &vtq_dev::Cluster) -> String {
        cluster.url().replace(&format!(":{}/", cluster.port()), &format!(":{}/", self.port))
    }

    /// Makes every answer late.
    pub(crate) fn delay_replies(&self, latency: Duration) {
        let latency = latency.as_millis().try_into().expect("a short time");
        self.shared.latency_ms.store(latency, Ordering::Relaxed);
    }

    /// Sends connections that are yet to come to another port; those that are there stay where they are.
    pub(crate) fn redirect(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::Relaxed);
    }

    /// Forwards nothing more on the connections of a role that are there now. Answers how many.
    pub(crate) fn drop_packets(&self, role: Role) -> usize {
        self.doom(Fate::Drop, |of| of == role)
    }

    /// The same for every connection.
    pub(crate) fn drop_all_packets(&self) -> usize {
        self.doom(Fate::Drop, |_| true)
    }

    /// Swallows what is answered on the connections of a role that are there now. Answers how many.
    pub(crate) fn swallow_replies(&self, role: Role) -> usize {
        self.doom(Fate::SwallowReplies, |of| of == role)
    }

    /// Closes every connection.
    pub(crate) fn cut(&self) -> usize {
        self.doom(Fate::Cut, |_| true)
    }

    fn doom(&self, fate: Fate, is_meant: impl Fn(Role) -> bool) -> usize {
        let links = self.shared.links.lock().unwrap();
        let open = links.iter().filter(|link| link.fate.receiver_count() > 0);
        let meant = open.filter(|link| is_meant(*link.role.lock().unwrap()));
        meant.map(|link| link.fate.send_replace(fate)).filter(|old| *old == Fate::Forward).count()
    }

    /// How many connections there have been, and how many packets from clients.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let Shared { connections, requests, .. } = &*self.shared;
        (connections.load(Ordering::Relaxed), requests.load(Ordering::Relaxed))
    }
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((client, _)) = listener.accept().await {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, shared.upstream.load(Ordering::Relaxed)));
        // Refused there, it is closed here.
        let Ok(server) = TcpStream::connect(upstream).await else { continue };
        for socket in [&client, &server] {
            let _ = socket.set_nodelay(true);
        }
        let (fate, fated) = watch::channel(Fate::Forward);
        let link = Arc::new(Link { role: Mutex::new(Role::Unknown), fate });
        shared.links.lock().unwrap().push(link.clone());
        tokio::spawn(serve(shared.clone(), link, fated, client, server));
    }
}

async fn serve(
    shared: Arc<Shared>,
    link: Arc<Link>,
    fated: watch::Receiver<Fate>,
    client: TcpStream,
    server: TcpStream,
) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = fated.clone();
    let requests = pump(from_client, to_server, fated.clone(), |bytes| {
        shared.requests.fetch_add(1, Ordering::Relaxed);
        link.look(bytes);
        (Duration::ZERO, Fate::Drop)
    });
    let replies = pump(from_server, to_client, fated, |_| {
        (Duration::from_millis(shared.latency_ms.load(Ordering::Relaxed)), Fate::SwallowReplies)
    });
    // Dropping the halves closes both sockets, as the end of either side does without a proxy.
    tokio::select! {
        () = requests => {}
        () = replies => {}
        _ = cut.wait_for(|fate| *fate == Fate::Cut) => {}
    }
}

/// Moves bytes one way, each packet as late as `look` says; none once the fate is `Drop` or the one that it says.
async fn pump(
    mut from: OwnedReadHalf,
    to: OwnedWriteHalf,
    fate: watch::Receiver<Fate>,
    mut look: impl FnMut(&[u8]) -> (Duration, Fate),
) {
    let (late, due) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let (latency, end) = look(&buffer[..length]);
            let now = *fate.borrow();
            if now == Fate::Drop || now == end {
                // Whoever vanishes without a word says nothing of its own end either.
                return std::future::pending().await;
            }
            if late.send((Instant::now() + latency, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    };
    tokio::join!(read, deliver(due, to));
}

async fn deliver(mut due: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>, mut to: OwnedWriteHalf) {
    while let Some((at, bytes)) = due.recv().await {
        sleep_until(at).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

impl Link {
    /// Learns the role from the first statement that gives it away.
    fn look(&self, bytes: &[u8]) {
        let mut role = self.role.lock().unwrap();
        if *role != Role::Unknown {
            return;
        }
        let says = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        let signs = [
            (".read\"(", Role::Fetch),
            (".extend\"(", Role::Settle),
            (".ack\"(", Role::Settle),
            ("LISTEN ", Role::Listen),
        ];
        if let Some((_, found)) = signs.iter().find(|(word, _)| says(word)) {
            *role = *found;
        }
    }
}
