//! Definitions that a writer has written. They are needed to check later calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rovelog_core::Limits;

use super::build::bad_format;
use crate::error::UlogError;
use crate::layout::{Formats, Layout, TimeField, TimeWidth, Undecodable};
use crate::schema::FormatText;
use crate::wire::{self, Info, Message};

/// Formats, topics and names in the log that is being written.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) formats: Formats,
    /// Names of the formats, in the order in which the formats were defined.
    format_names: Vec<String>,
    /// Subscriptions that were written, by message id. `None` for an id that is not subscribed.
    topics: Vec<Option<Written>>,
    /// Message ids of the topics, by name and instance. If a topic was subscribed several times,
    /// its latest id is stored.
    pub(super) names: HashMap<(String, u8), u16>,
    /// Names of the information messages that were written.
    pub(super) infos: HashSet<String>,
    /// Names of the multi information messages that were written.
    pub(super) multi_infos: HashSet<String>,
    /// Types of the parameters that were written, by name.
    pub(super) parameters: HashMap<String, Box<str>>,
}

/// A subscription that the writer has written.
#[derive(Debug)]
struct Written {
    /// Name of the subscribed format.
    name: String,
    layout: Result<Arc<Layout>, Undecodable>,
    /// True if the subscription was ended by an 'R' message.
    unsubscribed: bool,
}

/// Returns the name in the key of a message, or `None` if the key is invalid.
fn name(part: Info<'_>) -> Option<String> {
    part.parse_key().map(|key| key.name.to_owned())
}

impl Tables {
    /// Adds a written message to the tables if it is a definition.
    pub(super) fn add(&mut self, message: &Message<'_>) {
        match *message {
            Message::Format(wire::Format { format: text }) => {
                if let Some(format) = FormatText::parse(text) {
                    self.formats.define(&format, text);
                    self.format_names.push(format.name.to_owned());
                }
            }
            Message::Subscription(subscription) => {
                let Some(name) = subscription.name() else { return };
                let wire::Subscription { multi_id, msg_id, .. } = subscription;
                let layout = self.formats.layout(name, &Limits::default());
                let at = usize::from(msg_id);
                if self.topics.len() <= at {
                    self.topics.resize_with(at + 1, || None);
                }
                self.topics[at] = Some(Written { name: name.to_owned(), layout, unsubscribed: false });
                self.names.insert((name.to_owned(), multi_id), msg_id);
            }
            Message::Unsubscription(wire::Unsubscription { msg_id }) => {
                if let Some(Some(topic)) = self.topics.get_mut(usize::from(msg_id)) {
                    topic.unsubscribed = true;
                }
            }
            Message::Info(part) => self.infos.extend(name(part)),
            Message::MultiInfo(multi) => self.multi_infos.extend(name(multi.info)),
            Message::Parameter(part) => {
                let entry = part.parse_key().map(|key| (key.name.to_owned(), key.ty.into()));
                self.parameters.extend(entry);
            }
            _ => {}
        }
    }

    /// Returns the layout of the rows with a message id.
    ///
    /// # Errors
    /// Returns an error if the id is not subscribed or its rows cannot be encoded.
    #[inline]
    pub(super) fn layout(&self, msg_id: u16) -> Result<&Arc<Layout>, UlogError> {
        match self.topics.get(usize::from(msg_id)) {
            Some(Some(Written { layout: Ok(layout), unsubscribed: false, .. })) => Ok(layout),
            Some(Some(Written { name, layout: Err(why), .. })) => {
                Err(UlogError::Undecodable { topic: name.clone(), why: why.to_string() })
            }
            _ => Err(UlogError::NotSubscribed { msg_id }),
        }
    }

    /// Checks a new subscription and returns its message id. The first id is 0, because the
    /// specification says: "The first use must set this to 0, then increase it."
    ///
    /// # Errors
    /// Returns an error if the subscription would be invalid.
    pub(super) fn may_subscribe(&mut self, format: &str, multi_id: u8) -> Result<u16, UlogError> {
        const FIRST: Option<TimeField> = Some(TimeField { offset: 0, width: TimeWidth::U64Micros });
        let refuse = |why| Err(UlogError::BadSubscription { topic: format!("{format}/{multi_id}"), why });
        if self.formats.text(format).is_none() {
            return refuse("its format is not defined");
        }
        let layout = self
            .formats
            .layout(format, &Limits::default())
            .map_err(|why| bad_format(format, why.to_string()))?;
        if layout.timestamp != FIRST {
            return refuse("its first field is not `uint64_t timestamp`");
        }
        if self.names.contains_key(&(format.to_owned(), multi_id)) {
            return refuse("this instance is already subscribed");
        }
        match u16::try_from(self.topics.len()) {
            Ok(msg_id) => Ok(msg_id),
            Err(_) => refuse("all 65536 ids are in use"),
        }
    }

    /// Checks that a reader can use all formats, even those without a subscription.
    ///
    /// # Errors
    /// Returns an error if a format contains itself, is too large, or uses an undefined type.
    pub(super) fn check_formats(&mut self) -> Result<(), UlogError> {
        for name in &self.format_names {
            self.formats.layout(name, &Limits::default()).map_err(|why| bad_format(name, why.to_string()))?;
        }
        Ok(())
    }
}
