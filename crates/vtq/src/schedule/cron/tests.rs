use super::*;
use crate::ErrorKind;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The ticks between two instants, as the clock of the zone shows them, with their offset.
fn ticks(expression: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let cron = Cron::new(expression, zone).unwrap();
    let mut found = Vec::new();
    let mut at = instant(from);
    while let Some(next) = cron.next_after(at).filter(|next| *next <= instant(to)) {
        assert!(next > at, "{expression}: {next} does not follow {at}");
        found.push(next.with_timezone(&cron.timezone).format("%d %H:%M%:::z").to_string());
        at = next;
    }
    found
}

/// The night in which 02:00 is followed by 03:00, in Berlin.
fn in_spring(expression: &str) -> Vec<String> {
    ticks(expression, "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T02:30:00Z")
}

/// The night in which the hour from 02:00 comes twice, in Berlin.
fn in_autumn(expression: &str) -> Vec<String> {
    ticks(expression, "Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z")
}

#[test]
fn a_time_that_is_left_out_is_made_up_for_once() {
    assert_eq!(in_spring("30 2 * * *"), ["29 03:00+02"]);
    assert_eq!(in_spring("0 2,3 * * *"), ["29 03:00+02"]);
    assert_eq!(in_spring("0,30 2,3 * * *"), ["29 03:00+02", "29 03:30+02"]);
    assert_eq!(in_spring("*/10 2 * * *"), ["29 03:00+02"]);
    assert_eq!(in_spring("0 2-4 * * *"), ["29 03:00+02", "29 04:00+02"]);
}

#[test]
fn a_time_that_comes_twice_counts_once() {
    assert_eq!(in_autumn("30 2 * * *"), ["25 02:30+02"]);
    assert_eq!(in_autumn("0 2,3 * * *"), ["25 02:00+02", "25 03:00+01"]);
    assert_eq!(in_autumn("*/30 2 * * *"), ["25 02:00+02", "25 02:30+02"]);
    assert_eq!(in_autumn("0 1-3 * * *"), ["25 02:00+02", "25 03:00+01"]);
}

#[test]
fn intervals_go_by_the_time_that_passes() {
    assert_eq!(in_spring("0 * * * *"), ["29 03:00+02", "29 04:00+02"]);
    assert_eq!(in_autumn("0 * * * *"), ["25 02:00+02", "25 02:00+01", "25 03:00+01"]);
    assert_eq!(in_autumn("30 */2 * * *"), ["25 02:30+02", "25 02:30+01"]);
    assert_eq!(in_autumn("@hourly"), in_autumn("0 * * * *"));
}

#[test]
fn every_day_of_a_year_has_one_tick_in_every_hour_that_is_named() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"] {
        for hour in 0..24 {
            let found =
                ticks(&format!("30 {hour} * * *"), zone, "2018-01-01T12:00:00Z", "2019-01-01T12:00:00Z");
            let mut days: Vec<&str> = found.iter().map(|tick| &tick[..2]).collect();
            days.dedup();

            assert_eq!((found.len(), days.len()), (365, 365), "{zone}, {hour} h");
        }
    }
}

#[test]
fn every_minute_is_1440_ticks_a_day_but_when_the_day_is_shorter_or_longer() {
    let count = |from, to| ticks("* * * * *", "America/New_York", from, to).len();

    assert_eq!(count("2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z"), 1440);
    assert_eq!(count("2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"), 1380);
    assert_eq!(count("2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"), 1500);
}

#[test]
fn a_day_that_a_zone_leaves_out_is_made_up_for() {
    // Samoa went from December 29 to December 31.
    let found = ticks("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-31T12:00:00Z");

    assert_eq!(found, ["29 12:00-10", "31 00:00+14", "31 12:00+14"]);
}

#[test]
fn between_the_two_times_of_an_hour_the_next_is_that_of_the_next_day() {
    let cron = Cron::new("30 2 * * *", "Europe/Berlin").unwrap();

    // 02:10 for the second time: 02:30 has been.
    let next = cron.next_after(instant("2026-10-25T01:10:00Z"));

    assert_eq!(next, Some(instant("2026-10-26T01:30:00Z")));
}

#[test]
fn seconds_and_fractions_of_them() {
    let cron = Cron::new("*/5 * * * * *", "UTC").unwrap();

    assert_eq!(
        cron.next_after(instant("2026-01-01T00:00:04.999999Z")),
        Some(instant("2026-01-01T00:00:05Z"))
    );
    assert_eq!(cron.next_after(instant("2026-01-01T00:00:05Z")), Some(instant("2026-01-01T00:00:10Z")));
    let named = Cron::new("30 0 3 * * *", "Europe/Berlin").unwrap();
    assert_eq!(named.next_after(instant("2026-01-01T02:00:30.5Z")), Some(instant("2026-01-02T02:00:30Z")));
}

#[test]
fn days_of_the_month_and_of_the_week_are_alternatives() {
    let found = ticks("0 12 13 * FRI", "UTC", "2026-01-01T00:00:00Z", "2026-01-20T00:00:00Z");

    assert_eq!(found, ["02 12:00+00", "09 12:00+00", "13 12:00+00", "16 12:00+00"]);
}

#[test]
fn a_plan_with_a_year_comes_to_its_end() {
    let cron = Cron::new("0 0 0 1 1 * 2020", "UTC").unwrap();

    assert_eq!(cron.next_after(instant("2026-01-01T00:00:00Z")), None);
}

#[test]
fn what_cannot_be_a_plan_is_refused_in_words() {
    let refusal = |expression: &str, zone: &str| {
        let error = Cron::new(expression, zone).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    };

    for expression in ["", "* * * *", "60 * * * *", "@reboot", "*/0 * * * *", "a b c d e", "5-2 * * * *"] {
        let text = refusal(expression, "UTC");
        assert!(text.starts_with(&format!("cron {expression:?} is not allowed: ")), "{text}");
    }
    assert_eq!(refusal("0 0 30 2 *", "UTC"), "cron \"0 0 30 2 *\" is not allowed: it has no tick at all");
    assert!(refusal("* * * * *", "europe/berlin").ends_with("it is written Europe/Berlin"));
    assert!(refusal("* * * * *", "Berlin").contains("timezone \"Berlin\" is not known: give a name"));
    assert!(refusal(&"* ".repeat(1000), "UTC").len() < 400);
}
