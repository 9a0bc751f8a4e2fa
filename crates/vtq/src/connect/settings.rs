//! Parameters turned into values: what one connection attempt needs to know.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::ChannelBinding;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::params::Params;
use super::tls::TlsSettings;
use crate::error::{Error, Result};

const DEFAULT_PORT: u16 = 5432;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVES: Keepalives =
    Keepalives { idle: Duration::from_secs(30), interval: Duration::from_secs(10), retries: 3 };

/// Everything a connection attempt needs, checked.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) targets: Vec<Target>,
    pub(crate) user: String,
    pub(crate) dbname: String,
    pub(crate) password: Option<Secret>,
    pub(crate) passfile: Option<PathBuf>,
    pub(crate) options: Option<String>,
    pub(crate) application_name: String,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) keepalives: Option<Keepalives>,
    pub(crate) tcp_user_timeout: Option<Duration>,
    pub(crate) session: Session,
    pub(crate) is_balanced: bool,
    pub(crate) channel_binding: ChannelBinding,
    pub(crate) tls: TlsSettings,
}

/// One server to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The directory of a Unix socket; none: the usual ones.
    Unix(Option<PathBuf>),
    /// A host name or address, and the address to use instead of looking the name up.
    Tcp { host: Option<String>, addr: Option<IpAddr> },
}

/// A password; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keepalives {
    pub(crate) idle: Duration,
    pub(crate) interval: Duration,
    pub(crate) retries: u32,
}

/// What a session must be (`target_session_attrs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl Settings {
    /// Checks every parameter; opens nothing.
    pub(crate) fn resolve(params: &Params) -> Result<Self> {
        refuse_what_cannot_be_done(params)?;
        let user = match params.get("user") {
            Some(user) => user.to_owned(),
            None => whoami::username()
                .map_err(|e| Error::config("no user is given and this process has none").with_source(e))?,
        };
        let name = params.get("application_name").or_else(|| params.get("fallback_application_name"));
        Ok(Self {
            targets: targets(params)?,
            dbname: params.get("dbname").unwrap_or(&user).to_owned(),
            user,
            password: params.get("password").map(|password| Secret(password.to_owned())),
            passfile: params.get("passfile").map(PathBuf::from),
            options: params.get("options").map(str::to_owned),
            application_name: name.unwrap_or("vtq").to_owned(),
            connect_timeout: limit(params, "connect_timeout", Duration::from_secs, CONNECT_TIMEOUT)?,
            keepalives: keepalives(params)?,
            tcp_user_timeout: limit(params, "tcp_user_timeout", Duration::from_millis, TCP_USER_TIMEOUT)?,
            session: session(params)?,
            is_balanced: choice(params, "load_balance_hosts", &[("disable", false), ("random", true)])?
                .unwrap_or(false),
            channel_binding: channel_binding(params)?,
            tls: TlsSettings::resolve(params)?,
        })
    }

    /// Reads the certificates and keys; `None` if TLS has no part in it, as over a Unix socket.
    pub(crate) fn load_tls(&self) -> Result<Option<MakeRustlsConnect>> {
        match self.targets.iter().all(|target| matches!(target.place, Place::Unix(_))) {
            true => Ok(None),
            false => self.tls.load(),
        }
    }

    /// Describes the database as a URL with no password and no parameters.
    pub(crate) fn redacted(&self) -> String {
        let targets: Vec<String> = self.targets.iter().map(Target::to_string).collect();
        format!("postgres://{}@{}/{}", self.user, targets.join(","), self.dbname)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Unix(None) => write!(f, "[local]:{}", self.port),
            Place::Unix(Some(folder)) => write!(f, "{}:{}", folder.display(), self.port),
            Place::Tcp { host: Some(host), .. } if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            Place::Tcp { host: Some(host), .. } => write!(f, "{host}:{}", self.port),
            Place::Tcp { addr: Some(IpAddr::V6(addr)), .. } => write!(f, "[{addr}]:{}", self.port),
            Place::Tcp { addr: Some(addr), .. } => write!(f, "{addr}:{}", self.port),
            Place::Tcp { .. } => write!(f, "localhost:{}", self.port),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Reads a parameter that is one of a few words.
pub(crate) fn choice<T: Copy>(params: &Params, name: &'static str, words: &[(&str, T)]) -> Result<Option<T>> {
    let Some(given) = params.get(name) else { return Ok(None) };
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == given) {
        return Ok(Some(*value));
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(Error::config(format!("`{name}` must be one of {}, and is {}", known.join(", "), shown(given))))
}

/// Shows a value that is surely no piece of a password.
fn shown(value: &str) -> String {
    let is_word = value.len() <= 30 && value.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    if is_word { format!("`{value}`") } else { "none of them".into() }
}

fn refuse_what_cannot_be_done(params: &Params) -> Result<()> {
    choice(params, "gssencmode", &[("disable", ()), ("prefer", ())])?;
    let encoding = params.get("client_encoding").unwrap_or("utf8").to_ascii_lowercase();
    match encoding.as_str() {
        "utf8" | "utf-8" | "unicode" | "auto" => Ok(()),
        _ => Err(Error::config("`client_encoding` must be UTF8: messages are JSON")),
    }
}

/// Pairs the lists `host`, `hostaddr` and `port` by position.
fn targets(params: &Params) -> Result<Vec<Target>> {
    let list = |name| params.get(name).map(|text| text.split(',').collect::<Vec<_>>()).unwrap_or_default();
    let (hosts, addrs, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = hosts.len().max(addrs.len()).max(1);
    if !hosts.is_empty() && !addrs.is_empty() && hosts.len() != addrs.len() {
        return Err(Error::config(format!(
            "`host` lists {} hosts and `hostaddr` {} addresses: they must pair up",
            hosts.len(),
            addrs.len()
        )));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(Error::config(format!(
            "`port` lists {} ports for {count} hosts: give one, or one each",
            ports.len()
        )));
    }
    (0..count)
        .map(|i| {
            let port = ports.get(i).or(ports.first().filter(|_| ports.len() == 1));
            let at = |list: &[&str]| list.get(i).map(|s| s.trim().to_owned()).filter(|s| !s.is_empty());
            Ok(Target { place: place(at(&hosts), at(&addrs))?, port: port_number(port.unwrap_or(&""))? })
        })
        .collect()
}

fn place(host: Option<String>, addr: Option<String>) -> Result<Place> {
    let addr = addr
        .map(|text| text.parse::<IpAddr>().map_err(|_| Error::config("`hostaddr` must be an IP address")))
        .transpose()?;
    match host {
        Some(host) if host.contains('@') => {
            // What follows an `@` that was not written %40 is the rest of a password.
            Err(Error::config("the host has an `@` in it: in a password, `@` is written %40"))
        }
        Some(host) if host.starts_with('/') && addr.is_none() => Ok(Place::Unix(Some(host.into()))),
        None if addr.is_none() && cfg!(unix) => Ok(Place::Unix(None)),
        host => Ok(Place::Tcp { host, addr }),
    }
}

fn port_number(text: &str) -> Result<u16> {
    if text.trim().is_empty() {
        return Ok(DEFAULT_PORT);
    }
    let port = text.trim().parse::<u16>().ok().filter(|&port| port > 0);
    port.ok_or_else(|| Error::config("`port` must be a number from 1 to 65535"))
}

fn number<T: FromStr>(params: &Params, name: &'static str) -> Result<Option<T>> {
    let Some(text) = params.get(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::config(format!("`{name}` must be a whole number"))),
    }
}

/// Reads a limit; zero and below mean none, as in libpq.
fn limit(
    params: &Params,
    name: &'static str,
    unit: fn(u64) -> Duration,
    default: Duration,
) -> Result<Option<Duration>> {
    match number::<i32>(params, name)? {
        None => Ok(Some(default)),
        Some(given) => Ok(u64::try_from(given).ok().filter(|&given| given > 0).map(unit)),
    }
}

/// Here zero means the default, as the system's own would outlive a visibility timeout by far.
fn keepalives(params: &Params) -> Result<Option<Keepalives>> {
    let seconds = |name, default| {
        limit(params, name, Duration::from_secs, default).map(|given| given.unwrap_or(default))
    };
    let given = Keepalives {
        idle: seconds("keepalives_idle", KEEPALIVES.idle)?,
        interval: seconds("keepalives_interval", KEEPALIVES.interval)?,
        retries: number(params, "keepalives_count")?.filter(|&count| count > 0).unwrap_or(KEEPALIVES.retries),
    };
    let is_off = number::<i32>(params, "keepalives")? == Some(0);
    Ok(Some(given).filter(|_| !is_off))
}

fn session(params: &Params) -> Result<Session> {
    let words = [
        ("any", Session::Any),
        ("read-write", Session::ReadWrite),
        ("read-only", Session::ReadOnly),
        ("primary", Session::Primary),
        ("standby", Session::Standby),
        ("prefer-standby", Session::PreferStandby),
    ];
    Ok(choice(params, "target_session_attrs", &words)?.unwrap_or(Session::Any))
}

fn channel_binding(params: &Params) -> Result<ChannelBinding> {
    let words = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    Ok(choice(params, "channel_binding", &words)?.unwrap_or(ChannelBinding::Prefer))
}
