use super::*;

fn instant(text: &str) -> DateTime<Utc> {
    format!("2026-01-01T{text}Z").parse().unwrap()
}

fn due(cron: &str, missed: Missed, next_at: &str, at: &str) -> Due {
    Due {
        at: instant(at),
        due_in: Duration::ZERO,
        name: "s".into(),
        revision: 1,
        cron: cron.into(),
        timezone: "UTC".into(),
        missed,
        grace: TimeDelta::minutes(1),
        next_at: (!next_at.is_empty()).then(|| instant(next_at)),
    }
}

/// The ticks that are sent, how many are skipped, and the next.
fn step(due: &Due) -> (Vec<String>, i64, String) {
    let step = due.step(&Cron::new(&due.cron, &due.timezone).unwrap());
    let time = |at: &DateTime<Utc>| at.format("%H:%M:%S").to_string();
    (step.ticks.iter().map(time).collect(), step.skipped, step.next_at.as_ref().map(time).unwrap_or_default())
}

fn expected(ticks: &[&str], skipped: i64, next: &str) -> (Vec<String>, i64, String) {
    (ticks.iter().map(|tick| (*tick).to_owned()).collect(), skipped, next.into())
}

const HOURLY: &str = "0 * * * *";

#[test]
fn a_new_schedule_begins_with_the_tick_to_come() {
    assert_eq!(step(&due(HOURLY, Missed::default(), "", "08:00:00")), expected(&[], 0, "09:00:00"));
}

#[test]
fn a_tick_within_the_grace_is_sent_whatever_the_policy() {
    for missed in [Missed::Skip, Missed::Once, Missed::All { cap: 1 }] {
        let found = step(&due(HOURLY, missed, "08:00:00", "08:01:00"));

        assert_eq!(found, expected(&["08:00:00"], 0, "09:00:00"), "{missed:?}");
    }
}

#[test]
fn three_missed_hours_by_policy() {
    let after = |missed| step(&due(HOURLY, missed, "08:00:00", "10:30:00"));

    assert_eq!(after(Missed::Skip), expected(&[], 3, "11:00:00"));
    assert_eq!(after(Missed::Once), expected(&["10:00:00"], 2, "11:00:00"));
    assert_eq!(
        after(Missed::All { cap: 100 }),
        expected(&["08:00:00", "09:00:00", "10:00:00"], 0, "11:00:00")
    );
    assert_eq!(after(Missed::All { cap: 2 }), expected(&["09:00:00", "10:00:00"], 1, "11:00:00"));
}

#[test]
fn one_that_is_in_time_stands_for_the_missed_ones() {
    let after = |missed| step(&due(HOURLY, missed, "08:00:00", "10:00:30"));

    assert_eq!(after(Missed::Skip), expected(&["10:00:00"], 2, "11:00:00"));
    assert_eq!(after(Missed::Once), expected(&["10:00:00"], 2, "11:00:00"));
    assert_eq!(after(Missed::All { cap: 1 }), expected(&["09:00:00", "10:00:00"], 1, "11:00:00"));
}

/// Steps until nothing is due any more: what is sent, and how many are skipped.
fn all_steps(mut due: Due) -> (Vec<DateTime<Utc>>, i64, usize) {
    let cron = Cron::new(&due.cron, &due.timezone).unwrap();
    let (mut ticks, mut skipped, mut steps) = (Vec::new(), 0, 0);
    while due.next_at.is_some_and(|next| next <= due.at) {
        let step = due.step(&cron);
        assert!(step.next_at > due.next_at, "no step back: {step:?}");
        assert!(step.ticks.len() <= MOST_SENT);
        ticks.extend(step.ticks);
        (skipped, steps) = (skipped + step.skipped, steps + 1);
        due.next_at = step.next_at;
    }
    (ticks, skipped, steps)
}

#[test]
fn a_long_absence_is_worked_off_in_steps_and_counts_every_tick() {
    for (missed, sent) in [(Missed::Skip, 61), (Missed::Once, 61), (Missed::All { cap: 1000 }, 1061)] {
        let (ticks, skipped, steps) = all_steps(due("* * * * * *", missed, "00:00:00", "10:00:00"));

        assert_eq!((ticks.len(), skipped), (sent, 36_001 - sent as i64), "{missed:?}");
        assert!(steps > 10, "{steps}");
        assert_eq!(ticks.last(), Some(&instant("10:00:00")));
        assert!(ticks.is_sorted_by(|a, b| *b - *a == TimeDelta::seconds(1)), "no gap, none twice");
    }
}

#[test]
fn more_ticks_in_time_than_a_transaction_may_send_are_all_sent() {
    let mut due = due("* * * * * *", Missed::Skip, "00:00:00", "01:00:00");
    due.grace = TimeDelta::hours(2);

    let (ticks, skipped, steps) = all_steps(due);

    assert_eq!((ticks.len(), skipped, steps), (3601, 0, 4));
}

#[test]
fn a_grace_longer_than_the_calendar_makes_nothing_missed() {
    let mut due = due(HOURLY, Missed::Skip, "08:00:00", "10:30:00");
    due.grace = TimeDelta::days(36_500);

    assert_eq!(step(&due).1, 0);
}
