//! Everything that can go wrong, where what went wrong is told with its causes.

use serde::Deserialize;
use serde_json::value::RawValue;
use vtq::{ConnectOptions, ErrorKind, Outgoing, QueueOptions, ReadOptions, SendOptions};

use super::{Bench, MARKER, body, options, outgoing};

#[derive(Debug, Deserialize)]
struct Order {
    #[serde(rename = "card")]
    _card: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Kind {
    Parcel,
}

/// Says what it was given, as many do.
#[derive(Debug)]
struct Picky;

impl<'de> Deserialize<'de> for Picky {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = Box::<RawValue>::deserialize(from)?;
        Err(serde::de::Error::custom(format!("{given} is not picky enough")))
    }
}

#[tokio::test]
async fn what_does_not_decode_is_not_quoted() {
    let bench = Bench::new(QueueOptions::new()).await;
    let options = SendOptions::new().header("token", MARKER);
    bench.queue.send_with(&Outgoing::new(&body()).unwrap(), &options).await.unwrap();
    bench.queue.send(MARKER).await.unwrap();
    let read = bench.queue.read(&ReadOptions::new().qty(2)).await.unwrap();

    let order = read[0].decode::<Order>().unwrap_err();
    let errors = [
        read[0].decode::<Picky>().unwrap_err(),
        read[1].decode::<Kind>().unwrap_err(),
        read[1].decode::<Order>().unwrap_err(),
        read[0].header::<u64>("token").unwrap_err(),
        read[0].header::<Picky>("token").unwrap_err(),
    ];

    assert_eq!(
        order.to_string(),
        "message 1 does not decode: invalid type, expected u64 at line 1 column 26",
        "what is told is enough to find it"
    );
    errors.iter().chain([&order]).for_each(|error| bench.show_error(error));
    bench.assert_discreet();
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_quoted() {
    let bench = Bench::new(QueueOptions::new()).await;
    let texts = [
        format!("{{\"card\": \"{MARKER}"),
        format!("{MARKER} {{}}"),
        format!("{{\"card\": \"{MARKER}\\u0000\"}}"),
        format!("[\"{MARKER}\", 1e999999]"),
    ];

    for text in texts {
        bench.show_error(&Outgoing::from_json(text).unwrap_err());
    }
    let reserved = SendOptions::new().header("vtq_x", MARKER);
    bench.show_error(&bench.queue.send_with(&outgoing_plain(), &reserved).await.unwrap_err());
    let late = options().priority(9);
    bench.show_error(&bench.queue.send_with(&outgoing(), &late).await.unwrap_err());
    bench.assert_discreet();
}

fn outgoing_plain() -> Outgoing {
    Outgoing::new(&body()).unwrap()
}

/// Rules that a user might put on a queue's table. Each refuses the message and quotes it: as the row or the key of its
/// DETAIL, or as the value that does not convert.
const RULES: [&str; 6] = [
    "ALTER TABLE vtq.q ADD CHECK (NOT message ? 'card')",
    "CREATE UNIQUE INDEX ON vtq.q ((message ->> 'card')); INSERT INTO vtq.q (message)
        SELECT jsonb_build_object('card', 'S3' || 'CRET')",
    "CREATE INDEX ON vtq.q (((message ->> 'card')::integer))",
    "CREATE INDEX ON vtq.q (((message ->> 'card')::uuid))",
    "ALTER TABLE vtq.q ADD CHECK ((message ->> 'card')::date > '2020-01-01')",
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'refused' USING DETAIL = NEW.message::text, HINT = NEW.headers::text; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON vtq.q FOR EACH ROW EXECUTE FUNCTION refuse()",
];

#[tokio::test]
async fn what_the_database_refuses_is_not_quoted() {
    for rule in RULES {
        let bench = Bench::new(QueueOptions::new()).await;
        bench.client.batch_execute(rule).await.unwrap();

        let one = bench.queue.send_with(&outgoing(), &options()).await.expect_err(rule);
        let many = bench.queue.send_batch(&[outgoing()], &options()).await.expect_err(rule);

        bench.show_error(&one);
        bench.show_error(&many);
        bench.assert_discreet();
    }
}

#[tokio::test]
async fn no_password_shows_however_wrong_the_url() {
    let bench = Bench::new(QueueOptions::new()).await;
    let broken = [
        format!("postgresql://ann:{MARKER}@localhost:no_port/db"),
        format!("postgresql://ann:{MARKER}@localhost:99999/db"),
        format!("postgresql://ann:{MARKER}@[::1/db"),
        format!("postgresql://ann:{MARKER}%zz@localhost/db"),
        format!("postgresql://localhost/db?password={MARKER}&sslmode=some"),
        format!("postgresql://localhost/db?password={MARKER}&nonsense=1"),
        format!("http://ann:{MARKER}@localhost/db"),
        format!("ann:{MARKER}@localhost/db"),
        format!("user=ann password={MARKER} port=none"),
        format!("user=ann password='{MARKER}"),
    ];
    for url in broken {
        let made = ConnectOptions::from_url(&url).and_then(|options| options.lazy());
        bench.show_error(&made.expect_err(&url));
    }

    // Port 1 is not PostgreSQL's, on any machine.
    let options = ConnectOptions::from_url(&format!("postgresql://ann:{MARKER}@127.0.0.1:1/db")).unwrap();
    bench.show("options", &options);
    let text = options.redacted();
    bench.show("redacted", &text);
    let error = options.connect().await.expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    bench.show_error(&error);
    bench.assert_discreet();
}
