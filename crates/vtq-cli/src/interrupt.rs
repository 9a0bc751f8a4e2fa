//! Ctrl-C: the first asks a command to stop where it can stop cleanly, the second ends it.

use tokio::sync::watch;

/// How often the user has asked to stop. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(watch::Receiver<u32>);

impl Interrupt {
    /// Starts to listen; from here on Ctrl-C no longer kills the process.
    pub(crate) fn listen() -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                sender.send_modify(|times| *times += 1);
            }
            // Where signals cannot be caught, Ctrl-C kills as ever: nobody must be told that it came.
            std::future::pending::<()>().await;
        });
        Self(receiver)
    }

    /// Leaves Ctrl-C to somebody else.
    pub(crate) fn never() -> Self {
        Self(watch::channel(0).1)
    }

    /// Tells whether the user has asked to stop.
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits until the user has asked this many times.
    pub(crate) async fn requested(&self, times: u32) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|seen| *seen >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
