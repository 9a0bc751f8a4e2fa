//! Histories that once failed, as short as they could be made.

use super::run::Stage;
use super::step::{Sent, Step};

const NOTHING: Sent = Sent { level: None, delay: None, limit: None, backoff: None, expires: None };

/// A read by a worker, which has yet to say that the run began; or by anybody else, which is the start.
fn read(holder: Option<i32>) -> Step {
    Step::Read { who: 0, qty: 1, hours: 1, holder, is_floored: false }
}

async fn assert_as_the_model_says(steps: &[Step]) {
    let failure = Stage::new().await.replay(1, steps).await;
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
}

#[tokio::test]
async fn a_limit_that_is_lowered_holds_for_a_message_whose_last_delivery_never_began() {
    let sent = [Step::Send(0, NOTHING, 1)];
    let two_runs = [read(None), Step::Pass(1), read(None), Step::Pass(1)];
    let lapsed = [read(Some(1)), Step::Pass(1)];

    assert_as_the_model_says(&[&sent[..], &two_runs, &lapsed, &[Step::Limit(0, 2), read(None)]].concat())
        .await;
}

#[tokio::test]
async fn a_run_that_was_said_late_to_have_begun_is_not_told_as_one_that_never_did() {
    let late = Step::Extend { who: 0, leases: vec![((1, 1), Some(true))], hours: 1 };
    let swept = [Step::Send(0, NOTHING, 1), read(Some(1)), Step::Pass(1), Step::Sweep(0, 1)];

    assert_as_the_model_says(&[&swept[..], &[late, Step::Pass(1), read(None)]].concat()).await;
}

#[tokio::test]
async fn a_delivery_that_never_began_is_no_attempt_of_a_message_that_expired() {
    let sent = Step::Send(0, Sent { expires: Some(2), ..NOTHING }, 1);

    assert_as_the_model_says(&[sent, read(Some(1)), Step::Pass(3), Step::Sweep(0, 1)]).await;
}
