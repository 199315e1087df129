//! Errors that the client finds itself before it sends a message.
use crate::error::Error;
use crate::remark::{plain_remark, step_after};
use rmqfast_remoting::code::response;

// `ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION`
pub const NO_ROUTE: i32 = 10005;

/// Returns the error for a topic without a route. `answer` is the code and remark of the name server, if it answered
/// with an error.
///
/// Source: `DefaultMQProducerImpl.sendDefaultImpl`.
pub fn no_route(topic: &str, answer: Option<(i32, String)>) -> Error {
    let text = format!("No route info of this topic: {topic}");
    let remark = answer.filter(|(code, _)| *code != response::TOPIC_NOT_EXIST).map(|(_, remark)| remark);
    let (text, next_step) = match remark {
        Some(remark) => {
            let step = step_after(&remark).map(|step| format!("; {step}")).unwrap_or_default();
            (format!("{text}\nthe name server says: {}{step}", plain_remark(&remark)), "")
        }
        None => (text, "create the topic, or see that its brokers are connected to this name server"),
    };
    Error::Client { text, remark: String::new(), code: NO_ROUTE, next_step }
}

/// Returns the error for a broker without a master in any route.
pub fn broker_not_exist(broker_name: &str) -> Error {
    let step = "it has no master in the routes: see that its master is connected to this name server";
    Error::client(format!("The broker[{broker_name}] not exist"), "", step)
}
