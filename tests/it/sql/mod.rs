//! The queue as SQL alone. These run on every PostgreSQL that vtq supports.

mod session;

mod admin;
mod aging;
mod backoff;
mod compact;
mod crash;
mod dead_letter;
mod deadlines;
mod fail;
mod fence;
mod front;
mod give_back;
mod lanes;
mod lanes_race;
mod limits;
mod lint;
mod maintain;
mod metrics;
mod names;
mod plans;
mod privileges;
mod races;
mod read;
mod redrive;
mod schedule;
mod send;
mod sweep;
mod time;
mod unique;
mod unique_races;
mod unique_retry;
mod version;
mod wake;
