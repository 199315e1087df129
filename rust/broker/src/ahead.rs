//! Pulls that are ahead of the heartbeat which tells of their subscription.
//!
//! After a rebalance a client raises the version of its subscription, pulls with it, and only then sends the heartbeat that says
//! so. RocketMQ refuses such a pull and its client waits a second before the next one: the second that most consumers lose when they
//! start. Here the pull waits a moment for the heartbeat; where none comes, it is refused as well.
//!
//! Source: `RebalancePushImpl.messageQueueChanged`, `PullMessageProcessor.processRequest`.
use crate::ground::Ground;
use crate::pull::Pulling;
use rmqfast_remoting::{Answer, Command, Connection, OwnedCommand};
use std::sync::Arc;
use std::time::Duration;

/// How often a pull looks whether its subscription has come, unless the options say otherwise.
pub const LOOKS: u16 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A pull that waits for a heartbeat.
struct Ahead {
    answer: Answer,
    request: OwnedCommand,
    looks: u16,
}

/// Answers a pull later, when it may look `looks` times more. Returns false where it cannot wait.
pub fn wait(ground: &Arc<Ground>, connection: &Arc<Connection>, request: &Command<'_>, looks: u16) -> bool {
    let kept = Command { body: b"", remark: None, ..request.clone() };
    let ahead = Ahead { answer: Answer::to(connection, request), request: OwnedCommand::from(&kept), looks };
    let ground = ground.clone();
    rmqfast_remoting::spawn_after(BETWEEN_LOOKS, move || look(&ground, &ahead))
}

fn look(ground: &Arc<Ground>, ahead: &Ahead) {
    let (connection, request) = (&ahead.answer.connection, ahead.request.borrow());
    if connection.is_open() {
        Pulling { ground, connection, request: &request, is_first: true, looks: ahead.looks }.answer_later();
    }
}
