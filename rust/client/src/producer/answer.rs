//! A broker's answer to a send.
//!
//! Source: `MQClientAPIImpl.processSendResponse`, `SendStatus`.
use crate::error::Error;
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Error as RemotingError, OwnedCommand};

/// The status of a stored message. With a status other than `SEND_OK`, the message was not flushed in time, or not
/// copied to a slave in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStatus {
    SendOk,
    FlushDiskTimeout,
    FlushSlaveTimeout,
    SlaveNotAvailable,
}

impl SendStatus {
    /// Returns the status for a response code, or `None` if the message is not stored.
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

/// The broker's answer for a stored message.
#[derive(Clone, Copy, Debug)]
pub struct StoredMessage<'a> {
    pub status: SendStatus,
    /// Message id made of the broker's address and the physical offset.
    pub offset_id: &'a str,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub transaction_id: Option<&'a str>,
    /// The broker's region; `None` for the default region.
    pub region: Option<&'a str>,
    pub is_traced: bool,
}

/// The reason why an answer does not confirm that the message is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Code(i32),
    /// The response code is SUCCESS, but `msgId`, `queueId` or `queueOffset` is missing.
    Incomplete,
}

impl<'a> StoredMessage<'a> {
    /// Parses the answer to a send.
    ///
    /// # Errors
    /// [`Refusal`] if the message is not stored, or fields are missing.
    pub fn of(answer: &'a OwnedCommand) -> Result<Self, Refusal> {
        let status = SendStatus::of_code(answer.code).ok_or(Refusal::Code(answer.code))?;
        let (mut offset_id, mut queue_id, mut queue_offset) = (None, None, None);
        let (mut transaction_id, mut region, mut is_traced) = (None, None, true);
        // one loop over the few fields is faster than a look-up for each
        for (name, value) in answer.fields.iter() {
            match name {
                "msgId" => offset_id = Some(value),
                "queueId" => queue_id = value.parse().ok(),
                "queueOffset" => queue_offset = value.parse().ok(),
                "transactionId" => transaction_id = Some(value),
                "MSG_REGION" => region = Some(value).filter(|region| !region.is_empty()),
                // on unless "false", as in `processSendResponse`
                "TRACE_ON" => is_traced = value != "false",
                _ => {}
            }
        }
        let (Some(offset_id), Some(queue_id), Some(queue_offset)) = (offset_id, queue_id, queue_offset) else {
            return Err(Refusal::Incomplete);
        };
        Ok(Self { status, offset_id, queue_id, queue_offset, transaction_id, region, is_traced })
    }

    /// Parses the answer to a send. An error contains the broker's address.
    ///
    /// # Errors
    /// [`Error::Response`]; [`Error::Remoting`] if the answer is incomplete.
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
