//! The queue against a small reference model: random histories of every verb, by several sessions of which some hold
//! transactions open, and of time that goes by.
//!
//! After each step the answers are compared, and now and then everything that is stored. Checked besides: `read_ct`
//! never falls, no run is beyond the budget, a message is in one place only and held by one at the most, and a stale
//! lease changes nothing, to the last bit.
//!
//! `VTQ_MODEL_SEEDS` (a number of seeds, or `from..to`) and `VTQ_MODEL_STEPS` ask for more.

mod dead;
mod found;
mod run;
mod snapshot;
mod sql;
mod state;
mod step;
mod verb;

use std::env;
use std::ops::Range;

use run::Stage;

const SEEDS: u64 = 3;
const STEPS: usize = 700;

#[tokio::test]
async fn random_histories_are_as_the_model_says() {
    let seeds = env::var("VTQ_MODEL_SEEDS").map_or(0..SEEDS, |text| seeds(&text));
    let steps =
        env::var("VTQ_MODEL_STEPS").map_or(STEPS, |text| text.parse().expect("VTQ_MODEL_STEPS is a number"));
    let mut stage = Stage::new().await;

    let mut failures = Vec::new();
    for seed in seeds {
        failures.extend(stage.run(seed, steps).await.err());
    }

    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn seeds(text: &str) -> Range<u64> {
    let number =
        |text: &str| text.parse().expect("VTQ_MODEL_SEEDS is a number, or two with `..` between them");
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(text),
    }
}
