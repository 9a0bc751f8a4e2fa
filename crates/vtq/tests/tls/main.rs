//! TLS against a real server: the same accept and refuse as psql in every cell, and words for each refusal.
//!
//! psql is asked too where there is one; its answer must be the same.
#![allow(clippy::unwrap_used)]

mod authority;
mod server;

use std::process::Command;

use authority::{Authority, Pair, self_signed};
use server::Outcome::{self, Plain, Refused, Tls};
use server::{Server, ask, by_vtq, chain};
use vtq::{ConnectOptions, ErrorKind};

const HOST: &str = "db.example";
const MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

fn fixture(cert: &str, key: &str) -> Pair {
    Pair { cert: cert.into(), key: key.into() }
}

/// Checks all modes at once, with this root certificate file.
#[track_caller]
fn assert_modes(server: &Server, roots: &str, expected: [Outcome; 6]) {
    let outcomes = MODES.map(|mode| {
        let roots = if roots.is_empty() { String::new() } else { format!("sslrootcert={roots}") };
        server.outcome(&server.dsn(HOST, &format!("sslmode={mode} {roots}")))
    });

    assert_eq!(outcomes, expected, "{MODES:?}, roots in {roots:?}");
}

/// What a connection that must fail says.
#[track_caller]
fn refusal(dsn: &str) -> String {
    let error = by_vtq(dsn).expect_err(dsn);
    assert_eq!(error.kind(), ErrorKind::Tls, "{}", chain(&error));
    assert!(!error.is_retryable(), "{}", chain(&error));
    chain(&error)
}

#[test]
fn modes_by_server() {
    let mut server = Server::start();
    let authority = Authority::new("root");
    let own = self_signed("self", &[HOST]);
    let ca = server.client_file("ca.crt", &authority.root);
    let own_root = server.client_file("own.crt", &own.cert);
    let absent = server.home().join("absent.crt").display().to_string();

    server.present(None);
    assert_modes(&server, "", [Plain, Plain, Plain, Refused, Refused, Refused]);
    assert_modes(&server, &ca, [Plain, Plain, Plain, Refused, Refused, Refused]);
    assert_eq!(
        refusal(&server.dsn(HOST, "sslmode=require")).split_once(": ").unwrap().1,
        "the server does not support TLS, but sslmode is require"
    );

    server.present(Some(&own));
    assert_modes(&server, "", [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &absent, [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &ca, [Plain, Plain, Plain, Refused, Refused, Refused]);
    assert_modes(&server, &own_root, [Plain, Plain, Tls, Tls, Tls, Tls]);
    let text = refusal(&server.dsn(HOST, &format!("sslmode=verify-full sslrootcert={ca}")));
    assert!(text.contains(&format!("is not signed by a root certificate in `{ca}`")), "{text}");
    let text = refusal(&server.dsn(HOST, &format!("sslmode=verify-full sslrootcert={absent}")));
    assert!(text.contains(&format!("there is no root certificate in `{absent}`")), "{text}");

    server.present(Some(&authority.sign("server", &["other.example"])));
    assert_modes(&server, "", [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &ca, [Plain, Plain, Tls, Tls, Tls, Refused]);
    let text = refusal(&server.dsn(HOST, &format!("sslmode=verify-full sslrootcert={ca}")));
    assert!(text.ends_with("is not for the host `db.example`, but sslmode is verify-full"), "{text}");

    server.present(Some(&authority.sign("server", &[HOST])));
    assert_modes(&server, "", [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &ca, [Plain, Plain, Tls, Tls, Tls, Tls]);
    assert_modes(&server, &own_root, [Plain, Plain, Plain, Refused, Refused, Refused]);

    server.present(Some(&authority.sign_expired("server", &[HOST])));
    assert_modes(&server, "", [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &ca, [Plain, Plain, Plain, Refused, Refused, Refused]);
    let text = refusal(&server.dsn(HOST, &format!("sslmode=verify-ca sslrootcert={ca}")));
    assert!(text.ends_with("the server's certificate has expired"), "{text}");
}

#[test]
fn certificates_by_the_recipes_of_the_manual() {
    let mut server = Server::start();
    let own = fixture(include_str!("fixtures/manual-self.crt"), include_str!("fixtures/manual-self.key"));
    let signed =
        fixture(include_str!("fixtures/manual-server.crt"), include_str!("fixtures/manual-server.key"));
    let own_root = server.client_file("own.crt", &own.cert);
    let root = server.client_file("root.crt", include_str!("fixtures/manual-root.crt"));

    server.present(Some(&own));
    assert_modes(&server, "", [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &own_root, [Plain, Plain, Tls, Tls, Tls, Tls]);
    assert_modes(&server, &root, [Plain, Plain, Plain, Refused, Refused, Refused]);

    server.present(Some(&signed));
    assert_modes(&server, "", [Plain, Plain, Tls, Tls, Refused, Refused]);
    assert_modes(&server, &root, [Plain, Plain, Tls, Tls, Tls, Tls]);
    assert_modes(&server, &own_root, [Plain, Plain, Plain, Refused, Refused, Refused]);
    let other_host = server.dsn("other.example", &format!("sslmode=verify-full sslrootcert={root}"));
    assert_eq!(server.outcome(&other_host), Refused);
    let older = format!("sslmode=verify-full sslrootcert={root} ssl_max_protocol_version=TLSv1.2");
    assert_eq!(server.outcome(&server.dsn(HOST, &older)), Tls);
}

#[test]
fn hosts_and_links() {
    let mut server = Server::start();
    let authority = Authority::new("root");
    let link = authority.intermediate("link");
    let ca = server.client_file("ca.crt", &authority.root);
    let with_link = server.client_file("both.crt", &(link.root.clone() + &authority.root));
    let link_only = server.client_file("link.crt", &link.root);
    let full = |host: &str, roots: &str| server_dsn(&server, host, roots);

    let named = authority.sign("ignored.example", &["db.example", "*.wild.example", "127.0.0.1"]);
    let dsns = ["db.example", "DB.example", "a.wild.example", "127.0.0.1"].map(|host| full(host, &ca));
    let wrong =
        ["wild.example", "a.b.wild.example", "ignored.example", "127.0.0.2"].map(|host| full(host, &ca));
    let through_link = [full(HOST, &with_link), full(HOST, &ca), full(HOST, &link_only)];
    let unnamed =
        server.dsn("HOST", &format!("sslmode=verify-full sslrootcert={ca}")).replace("host=HOST ", "");

    server.present(Some(&named));
    for dsn in &dsns {
        assert_eq!(server.outcome(dsn), Tls, "{dsn}");
    }
    for dsn in &wrong {
        assert_eq!(server.outcome(dsn), Refused, "{dsn}");
    }
    assert_eq!(server.outcome(&unnamed), Refused);
    assert_eq!(server.outcome(&unnamed.replace("verify-full", "verify-ca")), Tls);

    server.present(Some(&authority.sign("db.example", &[])));
    assert_eq!(server.outcome(&dsns[0]), Tls, "the common name counts where there is no other");
    assert_eq!(server.outcome(&dsns[2]), Refused);

    let leaf = link.sign("server", &[HOST]);
    server.present(Some(&leaf));
    assert_eq!(through_link.each_ref().map(|dsn| server.outcome(dsn)), [Tls, Refused, Refused]);
    let chained = Pair { cert: leaf.cert + &link.root, key: leaf.key };
    server.present(Some(&chained));
    assert_eq!(through_link.each_ref().map(|dsn| server.outcome(dsn)), [Tls, Tls, Refused]);
}

fn server_dsn(server: &Server, host: &str, roots: &str) -> String {
    server.dsn(host, &format!("sslmode=verify-full sslrootcert={roots}"))
}

#[test]
fn client_certificates() {
    let mut server = Server::start();
    let authority = Authority::new("root");
    let good = authority.sign("postgres", &[]);
    let stranger = self_signed("postgres", &[]);
    server.write("client-ca.crt", &authority.root);
    server.write("pg_hba.conf", "local all all trust\nhostssl all all all cert\n");
    server.present(Some(&authority.sign("server", &[HOST])));
    let with =
        |cert: &str, key: &str| server.dsn(HOST, &format!("sslmode=require sslcert={cert} sslkey={key}"));
    let (cert, key) = (server.client_file("c.crt", &good.cert), server.client_file("c.key", &good.key));
    let (bad_cert, bad_key) =
        (server.client_file("s.crt", &stranger.cert), server.client_file("s.key", &stranger.key));

    assert_eq!(server.outcome(&with(&cert, &key)), Tls);
    assert_eq!(server.outcome(&with(&cert, &bad_key)), Refused);
    assert_eq!(server.outcome(&with(&bad_cert, &bad_key)), Refused);
    assert_eq!(server.outcome(&with("/absent.crt", "/absent.key")), Refused);
    assert_eq!(server.outcome(&with(&cert, "/absent.key")), Refused);
    assert_eq!(server.outcome(&with(&key, &key)), Refused);

    let text = refusal(&with(&bad_cert, &bad_key));
    assert!(text.contains("it may want another client certificate"), "{text}");
    let text = refusal(&with(&cert, "/absent.key"));
    assert!(text.ends_with("but its key `/absent.key` is missing"), "{text}");
    let text = refusal(&with(&key, &key));
    assert!(text.ends_with("holds no PEM certificate"), "{text}");
    let without = by_vtq(&server.dsn(HOST, "sslmode=require")).unwrap_err();
    assert!(
        chain(&without).contains("connection requires a valid client certificate"),
        "{}",
        chain(&without)
    );
}

#[test]
fn client_keys() {
    let mut server = Server::start();
    let authority = Authority::new("root");
    let good = authority.sign("postgres", &[]);
    server.present(Some(&authority.sign("server", &[HOST])));
    let cert = server.client_file("c.crt", &good.cert);
    let with = |key: &str| server.dsn(HOST, &format!("sslmode=require sslcert={cert} sslkey={key}"));

    let open = server.client_file("open.key", &good.key);
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(server.outcome(&with(&open)), Refused);
    assert!(refusal(&with(&open)).contains("has group or world access"));

    let locked = server.client_file("locked.key", &good.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"));
    assert!(refusal(&with(&locked)).contains("is encrypted, and passphrases are not supported"));

    let damaged =
        server.client_file("damaged.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    assert_eq!(server.outcome(&with(&damaged)), Refused);
    assert!(refusal(&with(&damaged)).contains(&format!("with the key `{damaged}`")));
}

#[test]
fn access_rules_decide_between_plain_and_tls() {
    let mut server = Server::start();
    let authority = Authority::new("root");
    let only = |kind| format!("local all all trust\n{kind} all all all password\n");

    server.write("pg_hba.conf", &only("hostssl"));
    server.present(Some(&authority.sign("server", &[HOST])));
    assert_modes(&server, "", [Refused, Tls, Tls, Tls, Refused, Refused]);

    server.write("pg_hba.conf", &only("hostnossl"));
    server.present(Some(&authority.sign("server", &[HOST])));
    assert_modes(&server, "", [Plain, Plain, Plain, Refused, Refused, Refused]);
}

#[test]
fn channel_binding_and_login() {
    let mut server = Server::start();
    server.write("pg_hba.conf", "local all all trust\nhost all all all scram-sha-256\n");
    server.present(Some(&self_signed("self", &[HOST])));

    assert_eq!(server.outcome(&server.dsn(HOST, "sslmode=require channel_binding=require")), Tls);
    assert_eq!(server.outcome(&server.dsn(HOST, "sslmode=disable channel_binding=require")), Refused);
    assert_eq!(server.outcome(&server.dsn(HOST, "sslmode=require channel_binding=disable")), Tls);

    for (wrong, words) in [
        ("password=P4SSW0RD", "password authentication failed for user \"postgres\" (SQLSTATE 28P01)"),
        ("password=''", "the server asks for a password, and none is given"),
        ("dbname=absent", "database \"absent\" does not exist (SQLSTATE 3D000)"),
    ] {
        let error = by_vtq(&server.dsn(HOST, wrong)).unwrap_err();

        assert!(!error.is_retryable() && !format!("{error:?}").contains("P4SSW0RD"), "{error:?}");
        assert!(chain(&error).ends_with(words), "{}", chain(&error));
    }
}

#[test]
fn unix_socket_knows_no_tls() {
    let server = Server::start();

    for mode in MODES {
        assert_eq!(server.outcome(&server.socket_dsn(&format!("sslmode={mode}"))), Plain, "{mode}");
    }
}

/// Run by the next test in a process of its own, because the environment belongs to the process.
#[test]
#[ignore = "run by environment_and_home"]
#[allow(clippy::print_stdout)]
fn connects_by_the_environment() {
    let answer = ConnectOptions::from_env().and_then(ask);

    println!("answer: {}", answer.map(|tls| format!("{tls}")).unwrap_or_else(|e| chain(&e)));
}

#[test]
fn environment_and_home() {
    let mut server = Server::start();
    let authority = Authority::new("root");
    server.present(Some(&authority.sign("server", &[HOST])));
    let dsn = server.dsn(HOST, "");
    let given = |name: &str| dsn.split(' ').find_map(|pair| pair.strip_prefix(name)).unwrap().to_owned();
    let (port, password) = (given("port="), given("password="));
    let run = |more: &[(&str, &str)]| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "connects_by_the_environment", "--ignored", "--nocapture"]).env_clear();
        child.env("HOME", server.home()).env("PGHOST", HOST).env("PGHOSTADDR", "127.0.0.1");
        child.env("PGPORT", &port).env("PGUSER", "postgres").envs(more.iter().copied());
        let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
        output.lines().find_map(|line| line.split_once("answer: ")).expect(&output).1.to_owned()
    };

    let with_password = [("PGPASSWORD", password.as_str())];
    assert_eq!(run(&with_password), "true");
    assert_eq!(run(&[with_password[0], ("PGSSLMODE", "disable")]), "false");
    let no_root = run(&[with_password[0], ("PGSSLMODE", "verify-full")]);
    assert!(no_root.contains("there is no root certificate in"), "{no_root}");
    assert!(run(&[("PGSERVICE", "x")]).contains("PGSERVICE is not supported"));

    server.client_file("home/.pgpass", &format!("{HOST}:{port}:*:postgres:{password}\n"));
    assert_eq!(run(&[]), "true");

    server.client_file("home/.postgresql/root.crt", &authority.root);
    assert_eq!(run(&[("PGSSLMODE", "verify-full")]), "true");
    server.client_file("home/.postgresql/root.crt", &Authority::new("other").root);
    assert!(run(&[("PGSSLMODE", "require")]).contains("which sslmode=require then checks too"));
}
