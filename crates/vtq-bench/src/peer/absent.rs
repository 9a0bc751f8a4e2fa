//! What stands for a peer that this program was built without; nothing calls it.

use anyhow::{Result, bail};

use super::Consume;
use crate::body::Body;

const ABSENT: &str = "built without the feature `peers`";

#[derive(Debug)]
pub(crate) struct Sender;

impl Sender {
    pub(super) async fn connect(_url: &str) -> Result<Self> {
        bail!(ABSENT)
    }

    pub(super) async fn send(&self, _bodies: Vec<Body>) -> Result<()> {
        bail!(ABSENT)
    }
}

pub(super) async fn install(_url: &str) -> Result<()> {
    bail!(ABSENT)
}

pub(super) async fn work(_consume: Consume) -> Result<()> {
    bail!(ABSENT)
}
