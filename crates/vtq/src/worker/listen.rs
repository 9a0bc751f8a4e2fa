//! The listener: LISTEN on a connection of its own, and proof that it hears.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::Notification;
use tokio_postgres::types::Type;

use super::builder::WakeUp;
use super::connection::Patience;
use super::event::WorkerEvent;
use super::health::chain;
use super::plan::Plan;
use crate::call;
use crate::connect::Vtq;
use crate::error::{Error, Result};
use crate::sql;

/// How long the proof may take. A pooler accepts LISTEN in transaction mode, and it never fires.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// How often a listener that hears nothing proves that it could.
const PROVE_EVERY: Duration = Duration::from_secs(90);

/// The listener's loop: connect, LISTEN, prove it, and only then stir the fetcher, so that nothing that was sent in
/// between is missed.
pub(super) async fn run(plan: Arc<Plan>) {
    let vtq = match &plan.settings.wake_up {
        WakeUp::Listen => plan.vtq.clone(),
        WakeUp::ListenAt(other) => other.clone(),
        WakeUp::Poll => return,
    };
    let mut patience = Patience::default();
    let mut was_told = false;
    loop {
        let ended = tokio::select! {
            () = plan.close.cancelled() => return,
            ended = listen(&plan, &vtq, &mut patience, &mut was_told) => ended,
        };
        plan.set_hearing(false);
        if let Err(error) = ended
            && !std::mem::replace(&mut was_told, true)
        {
            plan.events.tell(WorkerEvent::ListenerDeaf { reason: chain(&error) });
        }
        tokio::select! {
            () = plan.close.cancelled() => return,
            () = tokio::time::sleep(patience.next()) => {}
        }
    }
}

/// Listens until the connection breaks.
async fn listen(plan: &Plan, vtq: &Vtq, patience: &mut Patience, was_told: &mut bool) -> Result<()> {
    let (client, mut heard) = vtq.dedicated().await?.spawn();
    let own = format!("vtq:{}", plan.worker_id.rsplit(':').next().unwrap_or_default());
    let mut channels: Vec<String> = plan.queues.iter().map(|served| served.name.channel()).collect();
    channels.extend([own.clone(), sql::SCHEDULES.into()]);
    client.batch_execute(&sql::listen(&channels)).await.map_err(|error| Error::db("listen", &error))?;
    prove(vtq, &own, &mut heard).await?;
    *patience = Patience::default();
    plan.set_hearing(true);
    if std::mem::take(was_told) {
        plan.events.tell(WorkerEvent::ListenerHears);
    }
    plan.stir.notify_one();
    plan.replan.notify_one();
    loop {
        match tokio::time::timeout(PROVE_EVERY, heard.recv()).await {
            Ok(Some(notification)) if notification.channel() == own => {}
            Ok(Some(notification)) if notification.channel() == sql::SCHEDULES => plan.replan.notify_one(),
            Ok(Some(_)) => plan.stir.notify_one(),
            Ok(None) => return Err(Error::unavailable("the listener's connection broke")),
            Err(_) => {
                prove(vtq, &own, &mut heard).await?;
                // The proof may have drunk a notification of a queue or of a schedule.
                plan.stir.notify_one();
                plan.replan.notify_one();
            }
        }
    }
}

/// Notifies itself, and waits to hear it.
///
/// Another connection says it: a pooler may run it in the session that listens, and hand the notification over with
/// the answer, where one that comes later would be dropped.
async fn prove(vtq: &Vtq, own: &str, heard: &mut mpsc::Receiver<Notification>) -> Result<()> {
    let (speaker, _) = vtq.dedicated().await?.spawn();
    let proof = async {
        call::rows(&speaker, "notify the listener", sql::NOTIFY, &[(&own, Type::TEXT)]).await?;
        while let Some(notification) = heard.recv().await {
            if notification.channel() == own {
                return Ok(());
            }
        }
        Err(Error::unavailable("the listener's connection broke"))
    };
    tokio::time::timeout(PROOF_LIMIT, proof).await.unwrap_or_else(|_| {
        Err(Error::unavailable(
            "the listener does not hear its own notification within 5 s: is a pooler in between? Give it a direct \
             address, or poll only",
        ))
    })
}
