//! A broker's answer to a send.
//!
//! Source: `MQClientAPIImpl.processSendResponse`, `SendStatus`.
use crate::error::Error;
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Error as RemotingError, OwnedCommand};

/// The safety of a stored message: with a flush or slave that was too late, it is stored as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStatus {
    SendOk,
    FlushDiskTimeout,
    FlushSlaveTimeout,
    SlaveNotAvailable,
}

impl SendStatus {
    /// The status of a response code; `None` where the message is not stored.
    pub fn of_code(code: i32) -> Option<Self> {
        Some(match code {
            response::SUCCESS => Self::SendOk,
            response::FLUSH_DISK_TIMEOUT => Self::FlushDiskTimeout,
            response::FLUSH_SLAVE_TIMEOUT => Self::FlushSlaveTimeout,
            response::SLAVE_NOT_AVAILABLE => Self::SlaveNotAvailable,
            _ => return None,
        })
    }
}

/// A message that a broker stored, as its answer says it.
#[derive(Clone, Copy, Debug)]
pub struct StoredMessage<'a> {
    pub status: SendStatus,
    /// The id by the broker's address and the offset in its log.
    pub offset_id: &'a str,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub transaction_id: Option<&'a str>,
    /// `None` stands for the default region.
    pub region: Option<&'a str>,
    pub is_traced: bool,
}

/// An answer without a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Code(i32),
    /// Success without `msgId`, `queueId` or `queueOffset`.
    Incomplete,
}

impl<'a> StoredMessage<'a> {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn of(answer: &'a OwnedCommand) -> Result<Self, Refusal> {
        let status = SendStatus::of_code(answer.code).ok_or(Refusal::Code(answer.code))?;
        let (mut offset_id, mut queue_id, mut queue_offset) = (None, None, None);
        let (mut transaction_id, mut region, mut is_traced) = (None, None, true);
        // in one walk: there are few fields, and each look-up would be a walk of its own
        for (name, value) in answer.fields.iter() {
            match name {
                "msgId" => offset_id = Some(value),
                "queueId" => queue_id = value.parse().ok(),
                "queueOffset" => queue_offset = value.parse().ok(),
                "transactionId" => transaction_id = Some(value),
                "MSG_REGION" => region = Some(value).filter(|region| !region.is_empty()),
                // all but "false" is on, as in `processSendResponse`
                "TRACE_ON" => is_traced = value != "false",
                _ => {}
            }
        }
        let (Some(offset_id), Some(queue_id), Some(queue_offset)) = (offset_id, queue_id, queue_offset) else {
            return Err(Refusal::Incomplete);
        };
        Ok(Self { status, offset_id, queue_id, queue_offset, transaction_id, region, is_traced })
    }

    /// Reads an answer; the error names the broker.
    ///
    /// # Errors
    /// [`Error::Response`]; [`Error::Remoting`]: the answer is incomplete.
    pub fn of_broker(answer: &'a OwnedCommand, address: &str) -> Result<Self, Error> {
        Self::of(answer).map_err(|refusal| match refusal {
            Refusal::Code(code) => {
                let remark = answer.remark.clone().unwrap_or_default();
                Error::Response { code, remark, address: address.to_owned() }
            }
            Refusal::Incomplete => {
                let fields: Vec<_> = answer.fields.iter().collect();
                let (expected, got) = ("msgId, queueId and queueOffset".to_owned(), format!("{fields:?}"));
                RemotingError::Malformed { what: "answer to a send", expected, got }.into()
            }
        })
    }
}
