//! Running a history: each step against the database and the model, and a comparison after it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};
use vtq_tests::TestDb;

use super::state::{LEVELS, Model, Ticket, Who};
use super::step::{Dice, SESSIONS, Step};
use super::{snapshot, sql};

/// Steps between two comparisons of everything.
const EVERY: usize = 25;

/// How long a failing history may be shortened before it is told.
const SHRINKING: Duration = Duration::from_secs(60);

/// The connections of one database, for any number of histories, each on a queue of its own.
pub(super) struct Stage {
    clients: Vec<Client>,
    observer: Client,
    queues: usize,
    _db: TestDb,
}

impl Stage {
    pub(super) async fn new() -> Self {
        let db = TestDb::new().await;
        let observer = db.client().await;
        observer.batch_execute(sql::HOURS).await.unwrap();
        let mut clients = Vec::new();
        for name in SESSIONS {
            let client = db.client().await;
            // A step that waits for another session's transaction is a mistake of the test: it shall not wait long.
            let setup = format!("SET application_name = 'session {name}'; SET lock_timeout = '5 s'");
            client.batch_execute(&setup).await.unwrap();
            clients.push(client);
        }
        Self { clients, observer, queues: 0, _db: db }
    }

    /// Draws and runs a history. When it fails: the steps, as few as were found to do, and what went wrong.
    pub(super) async fn run(&mut self, seed: u64, steps: usize) -> Result<(), String> {
        let mut dice = Dice::new(seed);
        let mut past = Vec::new();
        let mut history = History::start(self, seed).await;
        let mut failure = None;
        while failure.is_none() && past.len() < steps {
            let step = dice.step(&history.model, &past);
            past.push(step.clone());
            failure = history.take(&step, past.len() % EVERY == 0).await.err();
        }
        if failure.is_none() {
            failure = history.finish().await.err();
        }
        let Some(failure) = failure else { return Ok(()) };
        let (past, failure) = self.shrink(seed, past, failure).await;
        let told: Vec<String> = past.iter().map(tell).collect();
        Err(format!("seed {seed}, {} steps:\n  {}\n{failure}", told.len(), told.join("\n  ")))
    }

    /// Leaves out steps, in runs of half the history down to single ones, as long as it still fails.
    async fn shrink(&mut self, seed: u64, mut past: Vec<Step>, mut failure: String) -> (Vec<Step>, String) {
        let deadline = Instant::now() + SHRINKING;
        let mut size = past.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < past.len() {
                if Instant::now() > deadline {
                    return (past, failure);
                }
                let mut fewer = past.clone();
                fewer.drain(at..(at + size).min(past.len()));
                match self.replay(seed, &fewer).await {
                    Some(still) => (past, failure) = (fewer, still),
                    None => at += size,
                }
            }
            size /= 2;
        }
        (past, failure)
    }

    /// Runs a history that is given, and compares everything after each step. What went wrong, if something did.
    pub(super) async fn replay(&mut self, seed: u64, steps: &[Step]) -> Option<String> {
        let mut history = History::start(self, seed).await;
        for step in steps {
            if let Err(failure) = history.take(step, true).await {
                return Some(failure);
            }
        }
        history.finish().await.err()
    }
}

/// A step as one reads it: whose, and what was asked.
fn tell(step: &Step) -> String {
    let Some(who) = step.who() else { return format!("{step:?} (hours)") };
    let after = if matches!(step, Step::Read { is_floored: true, .. }) { ", <floors>" } else { "" };
    let statement = sql::sql(step, "q", after);
    let call = statement.find("vtq.").map_or(statement.as_str(), |at| &statement[at..]);
    format!("{}: {}", SESSIONS[who], call.trim_end_matches(" AS id"))
}

/// A place in the line as the database told it.
#[derive(Debug, Clone)]
struct Told {
    due: String,
    id: i64,
    /// The hour of the model's clock then.
    hour: i64,
}

/// One history under way.
struct History<'a> {
    stage: &'a Stage,
    queue: String,
    model: Model,
    /// Whether acks go to the archive.
    keeps: bool,
    /// The last place of each level that a session was given.
    places: BTreeMap<Who, [Option<Told>; LEVELS.len()]>,
    seen: BTreeMap<i64, i32>,
}

impl<'a> History<'a> {
    async fn start(stage: &'a mut Stage, seed: u64) -> Self {
        for client in &stage.clients {
            // What a failed history before may have left open.
            client.batch_execute("ROLLBACK").await.unwrap();
        }
        stage.queues += 1;
        let queue = format!("q{}", stage.queues);
        let keeps = !seed.is_multiple_of(3);
        let on_ack = if keeps { "archive" } else { "delete" };
        let options = format!(
            r#"{{"priorities": [9, 0], "max_attempts": 3, "aging": null, "on_ack": "{on_ack}", "backoff": {}}}"#,
            sql::policy(&super::state::Backoff::Doubling)
        );
        stage
            .observer
            .batch_execute(&format!("SELECT vtq.create_queue('{queue}', '{options}')"))
            .await
            .unwrap();
        Self { stage, queue, model: Model::new(3), keeps, places: BTreeMap::new(), seen: BTreeMap::new() }
    }

    async fn take(&mut self, step: &Step, is_compared: bool) -> Result<(), String> {
        if step.is_barred(&self.model) {
            return Ok(());
        }
        let stale = self.stale(step);
        let mut statements = vec![sql::sql(step, &self.queue, &self.after(step))];
        if !stale.is_empty() {
            let image = snapshot::image_sql(&self.queue, &stale);
            statements = vec![image.clone(), statements.remove(0), image];
        }
        let client = &self.stage.clients[step.who().unwrap_or(0)];
        // All in one round trip: there are thousands of them.
        let mut answers = answers(client, &statements.join("; "))
            .await
            .map_err(|error| format!("{}\n{error}", tell(step)))?;
        let images = match &answers[..] {
            [before, _, after] if !stale.is_empty() => Some((lines(before), lines(after))),
            _ => None,
        };
        let rows = answers.swap_remove(usize::from(images.is_some()));

        let expected = self.model.take(step);
        let got = if matches!(step, Step::Pass(_)) { expected.clone() } else { lines(&rows) };
        if got != expected {
            return Err(format!("{}\n  expected: {expected:?}\n  got:      {got:?}", tell(step)));
        }
        if let Some((before, after)) = images.filter(|(before, after)| before != after) {
            return Err(format!(
                "{}\n  a stale lease changed\n  {before:#?}\n  to\n  {after:#?}",
                tell(step)
            ));
        }
        if let Step::Read { who, .. } = step {
            self.remember(*who, &rows);
        }
        if is_compared {
            self.compare().await.map_err(|error| format!("after {}\n{error}", tell(step)))
        } else {
            Ok(())
        }
    }

    /// The messages of which a step has a lease that is stale, and none that is held.
    fn stale(&self, step: &Step) -> Vec<i64> {
        let Some(who) = step.who() else { return Vec::new() };
        let (held, stale): (Vec<Ticket>, Vec<Ticket>) =
            step.tickets().into_iter().partition(|ticket| self.model.held(who, *ticket).is_some());
        let ids = stale.into_iter().map(|ticket| ticket.0);
        ids.filter(|id| held.iter().all(|ticket| ticket.0 != *id)).collect()
    }

    /// The floors of a read, as instants of the database: the hours that went by since are taken off.
    fn after(&self, step: &Step) -> String {
        let Step::Read { who, is_floored: true, .. } = step else { return String::new() };
        let places = self.places.get(who).cloned().unwrap_or_default();
        let (mut instants, mut ids) = (Vec::new(), Vec::new());
        for place in places {
            let (instant, id) = match place {
                Some(Told { due, id, hour }) => {
                    let hours = self.model.now().hour - hour;
                    (format!("'{due}'::timestamptz - interval '{hours} h'"), id.to_string())
                }
                None => ("NULL".into(), "NULL".into()),
            };
            instants.push(instant);
            ids.push(id);
        }
        format!(", ARRAY[{}]::timestamptz[], ARRAY[{}]::bigint[]", instants.join(", "), ids.join(", "))
    }

    fn remember(&mut self, who: Who, rows: &[SimpleQueryRow]) {
        let hour = self.model.now().hour;
        let places = self.places.entry(who).or_default();
        for row in rows {
            let column = |nth: usize| row.get(nth).unwrap_or_default();
            let nth = LEVELS.iter().position(|level| level.to_string() == column(1));
            let id = column(3).parse().unwrap_or_default();
            places[nth.unwrap_or_default()] = Some(Told { due: column(2).to_owned(), id, hour });
        }
    }

    /// Compares everything that is committed.
    async fn compare(&mut self) -> Result<(), String> {
        let answers = answers(&self.stage.observer, &snapshot::sql(&self.queue)).await?;
        let mut got: Vec<String> = answers.iter().flat_map(|rows| lines(rows)).collect();
        let mut expected = snapshot::of(&self.model, self.keeps);
        got.sort();
        expected.sort();
        snapshot::check(&got, &mut self.seen)?;
        if got == expected {
            return Ok(());
        }
        let missing =
            expected.iter().filter(|line| !got.contains(line)).map(|line| format!("  expected: {line}"));
        let odd =
            got.iter().filter(|line| !expected.contains(line)).map(|line| format!("  got:      {line}"));
        Err(missing.chain(odd).collect::<Vec<_>>().join("\n"))
    }

    /// Ends the open transactions and compares once more.
    async fn finish(&mut self) -> Result<(), String> {
        for who in self.model.open_sessions() {
            self.take(&Step::End(who, true), false).await?;
        }
        self.compare().await
    }
}

/// The rows that each of some statements answers.
async fn answers(client: &Client, sql: &str) -> Result<Vec<Vec<SimpleQueryRow>>, String> {
    let messages = client.simple_query(sql).await.map_err(|error| format!("{error:?}"))?;
    let (mut answers, mut rows) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => rows.push(row),
            SimpleQueryMessage::CommandComplete(_) => answers.push(std::mem::take(&mut rows)),
            _ => {}
        }
    }
    Ok(answers)
}

/// The first column.
fn lines(rows: &[SimpleQueryRow]) -> Vec<String> {
    rows.iter().filter_map(|row| row.get(0).map(str::to_owned)).collect()
}
