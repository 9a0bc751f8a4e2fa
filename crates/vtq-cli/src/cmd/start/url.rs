//! `--url`: a POST per message.

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::time::timeout;
use vtq::{Context, Failure, Message};

use super::ending::{self, Ended};

/// How much of a response is kept as the error's text, in bytes.
const KEPT: usize = 4096;
/// How much of a response is read, and how long it is waited for: what is read whole leaves its connection usable.
const READ: usize = 64 * 1024;
const READ_LIMIT: Duration = Duration::from_secs(5);
/// How long connecting may take, TLS included. What comes after is limited by the run's own timeout.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: less than the 5 s after which some servers (Node's) close it, which a
/// request that is on its way would learn too late.
const IDLE: Duration = Duration::from_secs(4);
/// The longest wait that the database takes.
const LONGEST_WAIT: Duration = Duration::from_secs(36_500 * 86_400);

/// An address as it was given. It may hold a password or a token, so nothing shows it.
#[derive(Clone)]
pub(crate) struct Address(String);

impl Address {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address")
    }
}

/// Posts each message.
#[derive(Clone)]
pub(super) struct Post {
    client: Client,
    url: Url,
}

// By hand, for the address may hold a secret.
impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post").field("origin", &self.origin()).finish_non_exhaustive()
    }
}

impl Post {
    /// Checks the address. The proxy variables of the environment (`HTTPS_PROXY`, `NO_PROXY` and so on) are heeded.
    pub(super) fn new(address: &Address) -> anyhow::Result<Self> {
        // Not quoted in the errors: a mistyped address has its secrets too.
        let url = Url::parse(address.as_str()).context("--url is no address such as https://host/path")?;
        if !matches!(url.scheme(), "http" | "https") {
            bail!("--url must begin with http:// or https://, and begins with {}:", url.scheme());
        }
        // Fails if there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder();
        if url.scheme() == "http" {
            // It would refuse to be built on a machine without root certificates, such as a slim container.
            builder = builder.tls_certs_only([]);
        }
        let client = builder
            .user_agent(concat!("vtq/", env!("CARGO_PKG_VERSION")))
            // A POST that is sent on becomes a GET without its body (301, 302, 303), and might carry a message to
            // a host that nobody named.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(reqwest::Error::without_url)
            .context("cannot set up the HTTP client for --url")?;
        Ok(Self { client, url })
    }

    /// Returns where messages go, without what may be secret: the path may be, too.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(super) async fn run(&self, message: Message, context: &Context) -> Ended {
        let headers = match headers(&message, context) {
            Ok(headers) => headers,
            Err(error) => return Ended::failed("headers", Failure::permanent(error.to_string())),
        };
        let body = Box::<str>::from(message.body).into_string();
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let exchange = async {
            let response = request.send().await?;
            let (status, retry_after) = (response.status(), retry_after(response.headers()));
            Ok::<_, reqwest::Error>((status, retry_after, text(response).await))
        };
        let answer = tokio::select! {
            biased;
            answer = exchange => answer,
            cause = context.until_cancelled() => return Ended::cancelled(cause),
        };
        match answer {
            Ok((status, retry_after, text)) => judge(status, retry_after, &text),
            Err(error) => unreachable_or_broken(error.without_url()),
        }
    }
}

fn headers(message: &Message, context: &Context) -> Result<HeaderMap, reqwest::header::InvalidHeaderValue> {
    let json = message.headers.as_ref().map_or("{}", |headers| headers.get());
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (HeaderName::from_static("vtq-msg-id"), message.id().into()),
        (HeaderName::from_static("vtq-read-ct"), message.lease.read_ct.into()),
        (HeaderName::from_static("vtq-attempt"), message.attempt.into()),
        (HeaderName::from_static("vtq-headers"), HeaderValue::from_str(&ascii(json))?),
    ]);
    headers.insert("vtq-queue", HeaderValue::from_str(context.queue().as_str())?);
    Ok(headers)
}

/// Writes JSON in ASCII, for a header holds nothing else.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
        } else {
            // Outside of ASCII JSON has characters in its strings only, where this is what they are written as.
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// Reads `Retry-After`: seconds, or a date. What cannot be read counts as not given.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A date is of the server's clock, so it is compared with that, if the response tells it.
        Err(_) => {
            let now = date(headers, DATE).unwrap_or_else(SystemTime::now);
            date(headers, RETRY_AFTER)?.duration_since(now).unwrap_or_default()
        }
    };
    Some(wait).filter(|wait| *wait <= LONGEST_WAIT)
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()
}

/// Returns the beginning of a response. What breaks off is as good as what was read: the status has said it all.
async fn text(mut response: Response) -> String {
    let mut kept = Vec::new();
    let read = async {
        let mut length = 0;
        while length < READ
            && let Ok(Some(chunk)) = response.chunk().await
        {
            length += chunk.len();
            kept.extend_from_slice(&chunk[..chunk.len().min(KEPT - kept.len())]);
        }
    };
    let _ = timeout(READ_LIMIT, read).await;
    let text = String::from_utf8_lossy(&kept);
    // Of a character that was cut in two, the first part is left out.
    let text = if kept.len() == KEPT { text.trim_end_matches('\u{FFFD}') } else { &text };
    text.trim().to_owned()
}

fn judge(status: StatusCode, retry_after: Option<Duration>, text: &str) -> Ended {
    let class = format!("HTTP {}", status.as_u16());
    let text = match text {
        _ if status.is_redirection() => {
            format!("{status}: redirects are not followed, --url must be the final address")
        }
        "" => status.to_string(),
        text => text.to_owned(),
    };
    // 408 and 425 are about the moment, 429 about the rate: the same message may do later.
    let is_passing = matches!(status.as_u16(), 408 | 425 | 429);
    let failure = match status {
        _ if status.is_success() => return Ended::done(),
        _ if status.is_client_error() && !is_passing => Failure::permanent(text),
        _ => match retry_after {
            Some(wait) => Failure::new(text).retry_after(wait),
            None => Failure::new(text),
        },
    };
    Ended::failed(class.clone(), failure.class(class).code(format!("http-{}", status.as_u16())))
}

/// No answer at all. The text holds the causes, which hold the host's address at most.
fn unreachable_or_broken(error: reqwest::Error) -> Ended {
    let (class, code) = if error.is_connect() {
        ("cannot connect", "http-connect")
    } else {
        ("no response", "http-no-response")
    };
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Ended::failed(class, Failure::new(ending::split_tail(&text).0).class(class).code(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_written_in_ascii() {
        assert_eq!(ascii(r#"{"a": "é😀\n"}"#), r#"{"a": "\u00e9\ud83d\ude00\n"}"#);
        assert_eq!(ascii("\"\u{7f}\""), r#""\u007f""#);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |value: &str| {
            retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(value).unwrap())]))
        };
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));

        assert_eq!(read(" 120 "), Some(Duration::from_secs(120)));
        assert!(read(&date).is_some_and(|wait| (85..=90).contains(&wait.as_secs())), "{date}");
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let of_server = HeaderMap::from_iter([
            (RETRY_AFTER, HeaderValue::from_static("Wed, 21 Oct 2015 07:28:00 GMT")),
            (DATE, HeaderValue::from_static("Wed, 21 Oct 2015 07:27:30 GMT")),
        ]);
        assert_eq!(retry_after(&of_server), Some(Duration::from_secs(30)));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
        assert_eq!(read("99999999999999"), None);
    }

    #[test]
    fn an_address_is_checked_and_never_quoted() {
        for bad in ["S3CRET", "ftp://u:S3CRET@host/", "http://u:S3CRET@/x"] {
            let error = Post::new(&bad.into()).expect_err(bad);
            assert!(!format!("{error:#}").contains("S3CRET"), "{error:#}");
        }
        let post = Post::new(&"https://u:S3CRET@host:8443/S3CRET?k=S3CRET".into()).unwrap();
        assert_eq!(post.origin(), "https://host:8443");
        assert!(!format!("{post:?}").contains("S3CRET"));
    }
}
