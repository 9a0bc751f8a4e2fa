//! Connection strings, read as libpq reads them: URLs and `keyword=value` lists.
//!
//! No refusal quotes what it refuses: a mistyped string has its password anywhere.

use std::iter::Peekable;
use std::str::Chars;

use super::params::Params;
use crate::error::{Error, Result};

/// Reads either form.
pub(crate) fn parse(text: &str) -> Result<Params> {
    let text = text.trim();
    match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
        Some(rest) => parse_url(rest),
        None if text.contains("://") => {
            Err(Error::config("a connection URL begins with postgres:// or postgresql://"))
        }
        None => parse_keywords(text),
    }
}

/// `[user[:password]@][host[:port],...][/dbname][?name=value&...]`, what follows the scheme.
fn parse_url(mut rest: &str) -> Result<Params> {
    let mut params = Params::default();
    // Credentials end at the first `@`, unless a `/` comes before it.
    if let Some(end) = rest.find(['@', '/']).filter(|&end| rest[end..].starts_with('@')) {
        let (user, password) = split_once_or_all(&rest[..end], ':');
        set_unless_empty(&mut params, "user", user)?;
        if let Some(password) = password {
            params.set("password", decode(password)?)?;
        }
        rest = &rest[end + 1..];
    }
    let (rest, query) = split_once_or_all(rest, '?');
    let (hosts, dbname) = split_once_or_all(rest, '/');
    if rest.contains('@') {
        return Err(Error::config(
            "the connection URL has an `@` after its host: in a user name, password or database name, `@` is \
             written %40 and `/` is written %2F",
        ));
    }
    parse_hosts(&mut params, hosts)?;
    set_unless_empty(&mut params, "dbname", dbname.unwrap_or_default())?;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Error::config("a parameter of the connection URL has no `=`"))?;
        match (decode(name)?.as_str(), decode(value)?) {
            // As JDBC writes it; libpq takes it too.
            ("ssl", value) if value == "true" => params.set("sslmode", "require")?,
            (name, value) => params.set(name, value)?,
        }
    }
    Ok(params)
}

/// Splits `host:port,[::1]:port` into the lists that libpq keeps.
fn parse_hosts(params: &mut Params, list: &str) -> Result<()> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for item in list.split(',') {
        let (host, port) = match item.strip_prefix('[').map(|inner| inner.split_once(']')) {
            None => split_once_or_all(item, ':'),
            Some(Some((host, ""))) => (host, None),
            Some(Some((host, port))) if port.starts_with(':') => (host, Some(&port[1..])),
            Some(_) => return Err(Error::config("the connection URL has an IPv6 address with no `]`")),
        };
        hosts.push(decode(host)?);
        ports.push(decode(port.unwrap_or_default())?);
    }
    let (hosts, ports) = (hosts.join(","), ports.join(","));
    if !hosts.is_empty() {
        params.set("host", hosts)?;
    }
    if !ports.is_empty() {
        params.set("port", ports)?;
    }
    Ok(())
}

fn set_unless_empty(params: &mut Params, name: &str, encoded: &str) -> Result<()> {
    match encoded.is_empty() {
        true => Ok(()),
        false => params.set(name, decode(encoded)?),
    }
}

fn split_once_or_all(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(head, tail)| (head, Some(tail)))
}

fn decode(encoded: &str) -> Result<String> {
    let wrong = || Error::config("the connection URL has a `%` that is not followed by two hex digits");
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| (b as char).to_digit(16)).ok_or_else(wrong);
        let value = digit()? * 16 + digit()?;
        decoded.push(u8::try_from(value).expect("two hex digits make a byte"));
    }
    let text = String::from_utf8(decoded).map_err(|_| Error::config("the connection URL is not UTF-8"))?;
    match text.contains('\0') {
        true => Err(Error::config("the connection URL has a NUL character in it")),
        false => Ok(text),
    }
}

/// `name = value name='value with spaces'`; a backslash escapes the next character.
fn parse_keywords(text: &str) -> Result<Params> {
    let mut params = Params::default();
    let mut chars = text.chars().peekable();
    loop {
        skip_blanks(&mut chars);
        if chars.peek().is_none() {
            return Ok(params);
        }
        let mut name = String::new();
        while let Some(c) = chars.next_if(|&c| c != '=' && !c.is_whitespace()) {
            name.push(c);
        }
        skip_blanks(&mut chars);
        if chars.next() != Some('=') {
            return Err(Error::config(
                "the connection string is neither a URL (postgres://...) nor a list of keyword=value",
            ));
        }
        skip_blanks(&mut chars);
        let value = keyword_value(&mut chars)?;
        params.set(&name, value)?;
    }
}

fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| c.is_whitespace()).is_some() {}
}

fn keyword_value(chars: &mut Peekable<Chars<'_>>) -> Result<String> {
    let quoted = chars.next_if_eq(&'\'').is_some();
    let mut value = String::new();
    loop {
        match chars.next() {
            Some('\\') => value.extend(chars.next()),
            Some('\'') if quoted => return Ok(value),
            Some(c) if c.is_whitespace() && !quoted => return Ok(value),
            Some(c) => value.push(c),
            None if quoted => {
                return Err(Error::config("the connection string has a quoted value with no closing quote"));
            }
            None => return Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, name: &'static str) -> Option<String> {
        parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).get(name).map(str::to_owned)
    }

    #[track_caller]
    fn assert_params(text: &str, expected: &[(&'static str, &str)]) {
        for (name, value) in expected {
            assert_eq!(get(text, name).as_deref(), Some(*value), "`{name}` of {text}");
        }
    }

    #[test]
    fn url_with_everything() {
        assert_params(
            "postgresql://ann:s%40c@db.example:5433/shop?application_name=a%20b&sslmode=verify-full",
            &[
                ("user", "ann"),
                ("password", "s@c"),
                ("host", "db.example"),
                ("port", "5433"),
                ("dbname", "shop"),
                ("application_name", "a b"),
                ("sslmode", "verify-full"),
            ],
        );
    }

    #[test]
    fn url_with_nothing() {
        for text in ["postgres://", "postgresql:///", "postgres://?", "postgres:///?"] {
            let params = parse(text).unwrap();

            for name in ["user", "host", "port", "dbname"] {
                assert_eq!(params.get(name), None, "{name} of {text}");
            }
        }
    }

    #[test]
    fn url_hosts() {
        assert_params("postgres://a:1,b,c:3/x", &[("host", "a,b,c"), ("port", "1,,3")]);
        assert_params("postgres://a,b/x", &[("host", "a,b"), ("port", ",")]);
        assert_params("postgres://[::1]:5/x", &[("host", "::1"), ("port", "5")]);
        assert_params("postgres://[fe80::1],b:6/x", &[("host", "fe80::1,b"), ("port", ",6")]);
        assert_params("postgres://%2Frun%2Fpg/x", &[("host", "/run/pg"), ("dbname", "x")]);
        assert_params("postgres:///x?host=/run/pg&port=6", &[("host", "/run/pg"), ("port", "6")]);
        assert_params("postgres://first/x?host=second", &[("host", "second")]);
        assert_eq!(get("postgres://a/x", "port"), None);
    }

    #[test]
    fn url_password_keeps_odd_characters() {
        assert_params("postgres://u:a:b?c#d&e=f@h/x", &[("password", "a:b?c#d&e=f"), ("host", "h")]);
        assert_params("postgres://u:%2F%25@h/x", &[("password", "/%")]);
        assert_eq!(get("postgres://u@h/x", "password"), None);
    }

    #[test]
    fn keyword_string() {
        assert_params(
            r"host = /run/pg  port=6 user='ann b' password='it\'s \\ it' dbname=a\ b",
            &[
                ("host", "/run/pg"),
                ("port", "6"),
                ("user", "ann b"),
                ("password", r"it's \ it"),
                ("dbname", "a b"),
            ],
        );
        assert_params("options='' host=x", &[("host", "x")]);
        assert!(parse("").unwrap().get("host").is_none());
    }

    #[test]
    fn jdbc_style_ssl() {
        assert_params("postgres://h/x?ssl=true", &[("sslmode", "require")]);
    }

    #[test]
    fn refusals_never_quote_the_string() {
        let wrong = [
            "postgres://u:S3CRET@h/x@y",
            "postgres://u:a/S3CRET@h/x",
            "postgres://u:S3CRET%zz@h",
            "postgres://u:S3CRET%4",
            "postgres://u:S3CRET%00@h",
            "postgres://u:S3CRET%ff@h",
            "postgres://u:a@S3CRET@h/x",
            "postgres://u:p@[::1/S3CRET",
            "postgres://u:p@[::1]S3CRET",
            "postgres://u:p@h/x?S3CRET",
            "postgres://u:p@h/x?S3CRET=1",
            "mysql://u:S3CRET@h/x",
            "S3CRET",
            "host=h password=x S3CRET",
            "host=h password='S3CRET",
            "host=h S3CRET=1",
        ];
        for text in wrong {
            let error = parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"));

            assert!(!format!("{error} {error:?}").contains("S3CRET"), "{text}: {error}");
        }
    }
}
