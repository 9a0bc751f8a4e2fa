//! Eight sessions on the same groups: order holds through failures, lapses and concurrent senders.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::session::Session;

const GROUPS: i64 = 4;
const EACH: i64 = 15;

/// What the sessions saw together.
#[derive(Default)]
struct Seen {
    /// Who holds a message of each lane, as long as nobody let a lease lapse.
    held: HashMap<String, Vec<i64>>,
    /// What was acked in each lane, in that order.
    done: HashMap<String, Vec<i64>>,
}

/// Reads, fails, lets lapse and acks until the queue is empty.
async fn work(session: Session, seen: Arc<Mutex<Seen>>, seed: u64, most: usize) {
    let mut dice = StdRng::seed_from_u64(seed);
    while seen.lock().unwrap().done.values().map(Vec::len).sum::<usize>() < (GROUPS * EACH) as usize {
        let qty = dice.random_range(1..4);
        // Long enough that a lease lapses only where this session wants it to.
        let lapses = dice.random_bool(0.03);
        let length = if lapses { "1 ms" } else { "1 h" };
        let read = format!("SELECT msg_id, read_ct, message ->> 0 FROM vtq.read('q', '{length}', {qty})");
        let rows = session.client.query(&read, &[]).await.unwrap();
        if lapses || rows.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        for row in &rows {
            let (id, lane): (i64, String) = (row.get(0), row.get(2));
            let mut seen = seen.lock().unwrap();
            let held = seen.held.entry(lane.clone()).or_default();
            held.push(id);
            assert!(held.len() <= most, "lane {lane}: {held:?} are in flight at once");
        }
        for row in rows {
            let (id, read_ct, lane): (i64, i32, String) = (row.get(0), row.get(1), row.get(2));
            let fails = dice.random_bool(0.1);
            {
                let mut seen = seen.lock().unwrap();
                seen.held.get_mut(&lane).unwrap().retain(|held| *held != id);
                if !fails {
                    seen.done.entry(lane).or_default().push(id);
                }
            }
            let settle = match fails {
                true => format!("SELECT outcome FROM vtq.fail('q', {id}, {read_ct}, '\"x\"', '5 ms')"),
                false => format!("SELECT vtq.ack('q', '{{{id}}}', '{{{read_ct}}}')"),
            };
            session.run(&settle).await;
        }
    }
}

async fn race(argument: &str, options: &str, most: usize) -> (Session, Seen) {
    let s = Session::with_queue(options).await;
    let seed: u64 = rand::random();
    eprintln!("seed {seed}");
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut tasks = Vec::new();
    for sender in 0..2 {
        let session = s.another().await;
        let argument = argument.to_owned();
        tasks.push(tokio::spawn(async move {
            for place in 0..EACH {
                for group in (0..GROUPS).filter(|group| group % 2 == sender) {
                    let send =
                        format!("SELECT vtq.send('q', '[\"{group}\", {place}]', {argument} => '{group}')");
                    session.run(&send).await;
                }
            }
        }));
    }
    for worker in 0..8 {
        tasks.push(tokio::spawn(work(s.another().await, seen.clone(), seed.wrapping_add(worker), most)));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (s, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_sessions_keep_the_order_of_every_group() {
    let (s, seen) = race("group_key", r#"{"max_attempts": 100}"#, 1).await;

    for group in 0..GROUPS {
        let done = &seen.done[&group.to_string()];
        let mut sorted = done.clone();
        sorted.sort_unstable();
        assert_eq!(*done, sorted, "group {group}: each has one sender, so its ids are its order");
        assert_eq!(done.len() as i64, EACH);
    }
    assert_eq!(s.count("vtq.q_archive").await, GROUPS * EACH);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_sessions_never_run_more_of_an_exclusive_key_than_allowed() {
    let (s, seen) = race("exclusive_key", r#"{"max_attempts": 100, "exclusive_limit": 2}"#, 2).await;

    assert_eq!(seen.done.values().map(Vec::len).sum::<usize>() as i64, GROUPS * EACH);
    assert_eq!(s.count("vtq.q_archive").await, GROUPS * EACH);
}
