use super::settings::{Place, Session, Target};
use super::*;
use crate::error::ErrorKind;

fn options(url: &str) -> ConnectOptions {
    ConnectOptions::from_url(url).unwrap_or_else(|e| panic!("{url}: {e}"))
}

fn settings(url: &str) -> Settings {
    options(url).settings().unwrap()
}

#[track_caller]
fn refusal(url: &str) -> String {
    let error = ConnectOptions::from_url(url).expect_err(url);
    assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{error}");
    error.to_string()
}

fn tcp(host: &str, port: u16) -> Target {
    Target { place: Place::Tcp { host: Some(host.into()), addr: None }, port }
}

#[test]
fn hosts_and_ports_pair_up() {
    assert_eq!(settings("postgres://a:1,b,c:3/x").targets, [tcp("a", 1), tcp("b", 5432), tcp("c", 3)]);
    assert_eq!(settings("host=a,b port=7").targets, [tcp("a", 7), tcp("b", 7)]);
    assert_eq!(settings("host=a port=").targets, [tcp("a", 5432)]);
    assert_eq!(settings("host=/run/pg port=6").targets[0].place, Place::Unix(Some("/run/pg".into())));
    assert_eq!(settings("dbname=x").targets[0].place, Place::Unix(None));
    assert_eq!(
        settings("host=db hostaddr=10.0.0.1").targets[0].place,
        Place::Tcp { host: Some("db".into()), addr: Some([10, 0, 0, 1].into()) }
    );
    assert!(refusal("host=a,b port=1,2,3").contains("3 ports for 2 hosts"));
    assert!(refusal("host=a,b hostaddr=10.0.0.1").contains("2 hosts"));
    assert!(refusal("hostaddr=db.example").contains("must be an IP address"));
}

#[test]
fn database_defaults_to_the_user_and_name_to_vtq() {
    let given = settings("postgres://ann@h");
    assert_eq!((given.dbname.as_str(), given.application_name.as_str()), ("ann", "vtq"));

    assert_eq!(settings("host=h fallback_application_name=a").application_name, "a");
    assert_eq!(settings("host=h fallback_application_name=a application_name=b").application_name, "b");
    assert!(!settings("host=h").user.is_empty());
}

#[test]
fn limits_have_defaults_parameters_and_setters() {
    let seconds = Duration::from_secs;
    let plain = settings("host=h");
    assert_eq!(plain.connect_timeout, Some(seconds(10)));
    assert_eq!(plain.tcp_user_timeout, Some(seconds(30)));
    assert_eq!(plain.keepalives, Some(Keepalives { idle: seconds(30), interval: seconds(10), retries: 3 }));

    let given =
        settings("host=h connect_timeout=3 tcp_user_timeout=1500 keepalives_idle=7 keepalives_count=9");
    assert_eq!(given.connect_timeout, Some(seconds(3)));
    assert_eq!(given.tcp_user_timeout, Some(Duration::from_millis(1500)));
    assert_eq!(given.keepalives, Some(Keepalives { idle: seconds(7), interval: seconds(10), retries: 9 }));

    let off = settings("host=h connect_timeout=0 tcp_user_timeout=0 keepalives=0");
    assert_eq!((off.connect_timeout, off.tcp_user_timeout, off.keepalives), (None, None, None));

    let set = options("host=h connect_timeout=3").connect_timeout(seconds(1)).settings().unwrap();
    assert_eq!(set.connect_timeout, Some(seconds(1)));
}

#[test]
fn values_that_are_none_of_the_words_are_refused_with_the_words() {
    assert_eq!(
        refusal("host=h sslmode=verify"),
        "`sslmode` must be one of disable, allow, prefer, require, verify-ca, verify-full, and is `verify`"
    );
    for url in ["host=h target_session_attrs=rw", "host=h channel_binding=x", "host=h load_balance_hosts=x"] {
        assert!(refusal(url).contains("must be one of"), "{url}");
    }
    for url in ["host=h port=0", "host=h port=65536", "host=h port=x", "host=h connect_timeout=1s"] {
        assert!(refusal(url).contains("must be a"), "{url}");
    }
    assert!(refusal("host=h gssencmode=require").contains("gssencmode"));
    assert!(refusal("host=h client_encoding=latin1").contains("UTF8"));
    assert!(refusal("host=h sslcrl=x").contains("`sslcrl` is not supported"));
    assert!(refusal("host=h sslrootcert=system sslmode=require").contains("must be verify-full"));
    assert!(refusal("host=h sslnegotiation=direct").contains("must be require or stronger"));
    assert_eq!(settings("host=h target_session_attrs=prefer-standby").session, Session::PreferStandby);
}

#[test]
fn password_is_never_shown() {
    let shown = [
        "postgres://ann:P4SSW0RD@h/x",
        "postgres://ann:P4%53SW0RD@h/x",
        "postgres://h/x?password=P4SSW0RD",
        "host=h password='P4SSW0RD'",
    ];
    for url in shown {
        let options = options(url);
        let vtq = options.clone().lazy().unwrap();

        let text = format!("{options:?} {options:#?} {} {vtq:?} {:?}", options.redacted(), vtq.options());

        assert!(!text.contains("SW0RD"), "{url}: {text}");
        assert!(text.contains("***"), "{url}: {text}");
    }
    for url in [
        "postgres://ann:P4SSW0RD@h:port/x",
        "postgres://ann:12/P4SSW0RD@h/x",
        "postgres://ann:P4SSW0RD/b@h/x",
        "postgres://ann:a@P4SSW0RD@h/x",
        "postgres://h/x?password=P4SSW0RD&sslmode=P4SSW0RD",
        "host=h port=P4SSW0RD",
        "host=P4SSW0RD@h",
        "host=h password=x P4SSW0RD",
    ] {
        let text = format!("{} {:?}", refusal(url), ConnectOptions::from_url(url).err());

        assert!(!text.contains("P4SSW0RD"), "{url}: {text}");
    }
}

#[test]
fn redacted_names_every_server() {
    for (url, expected) in [
        ("postgres://ann:x@h/shop", "postgres://ann@h:5432/shop"),
        ("postgres://ann@a:1,b:2/shop?sslmode=disable", "postgres://ann@a:1,b:2/shop"),
        ("postgres://ann@[::1]:7/shop", "postgres://ann@[::1]:7/shop"),
        ("user=ann hostaddr=::1", "postgres://ann@[::1]:5432/ann"),
        ("user=ann host=/run/pg", "postgres://ann@/run/pg:5432/ann"),
        ("user=ann", "postgres://ann@[local]:5432/ann"),
    ] {
        assert_eq!(options(url).redacted(), expected);
    }
}

#[test]
fn environment_fills_what_the_url_leaves_out() {
    let lookup = |name: &str| match name {
        "PGHOST" => Some("other".to_owned()),
        "PGUSER" => Some("ann".to_owned()),
        "PGPORT" => Some("7".to_owned()),
        "PGPASSWORD" => Some("P4SSW0RD".to_owned()),
        _ => None,
    };
    let mut options = options("postgres://h/shop");

    options.params.fill_from(env::read(lookup).unwrap());

    assert_eq!(options.redacted(), "postgres://ann@h:7/shop");
    assert_eq!(options.settings().unwrap().password.unwrap().0, "P4SSW0RD");
}

#[test]
fn pool_of_none_is_refused() {
    let error = options("host=h").pool_size(0).lazy().unwrap_err();

    assert_eq!(error.to_string(), "`pool_size` must be at least 1, and is 0");
}

#[tokio::test]
async fn refused_connection_names_the_server_and_is_retryable() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://ann:P4SSW0RD@127.0.0.1:{unused}/shop");

    let error = Vtq::connect(&url).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_retryable());
    assert_eq!(error.to_string(), format!("cannot connect to `127.0.0.1:{unused}`"));
    assert!(!format!("{error:?}").contains("P4SSW0RD"));
}

#[tokio::test]
async fn several_servers_are_all_named() {
    let error = Vtq::connect("postgres://ann@127.0.0.1:1,127.0.0.1:2/shop").await.unwrap_err();

    assert_eq!(error.to_string(), "cannot connect to any of `127.0.0.1:1`, `127.0.0.1:2`");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn silent_server_runs_into_the_connect_limit() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let options = options(&format!("postgres://ann@127.0.0.1:{port}/shop?sslmode=disable"));

    let error = options.connect_timeout(Duration::from_millis(50)).connect().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.to_string(), format!("connect to `127.0.0.1:{port}`: no answer within 50ms"));
}

#[tokio::test]
async fn server_that_hangs_up_during_the_handshake_is_away() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let going_down = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.read_exact(&mut [0; 8]).await.unwrap();
        socket.write_all(b"S").await.unwrap();
        socket.read_u8().await.unwrap();
    });
    let options = options(&format!("postgres://ann@127.0.0.1:{port}/shop?sslmode=require"));

    let error = options.connect().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.is_retryable());
    going_down.await.unwrap();
}

#[test]
fn futures_can_be_spawned() {
    fn is_send<T: Send>(_: &T) {}
    let vtq = options("host=h").lazy().unwrap();

    is_send(&vtq.ping());
    is_send(&vtq.dedicated());
    is_send(&async {
        let client = vtq.client().await?;
        client
            .bounded("test", async { client.batch_execute("").await.map_err(|e| Error::db("begin", &e)) })
            .await
    });
}
