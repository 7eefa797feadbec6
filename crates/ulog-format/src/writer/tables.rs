//! What a writer must remember of what it has written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rovelog_core::Limits;

use super::build::bad_format;
use crate::error::UlogError;
use crate::layout::{Formats, Layout, TimeField, TimeWidth, Undecodable};
use crate::schema::FormatText;
use crate::wire::{self, Info, Message};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) formats: Formats,
    /// The names of the formats, in order.
    format_names: Vec<String>,
    /// By message id.
    topics: Vec<Option<Written>>,
    /// Message ids by name and instance; the latest one counts.
    pub(super) names: HashMap<(String, u8), u16>,
    pub(super) infos: HashSet<String>,
    pub(super) multi_infos: HashSet<String>,
    /// The type of each parameter.
    pub(super) parameters: HashMap<String, Box<str>>,
}

/// A subscription that was written.
#[derive(Debug)]
struct Written {
    name: String,
    layout: Result<Arc<Layout>, Undecodable>,
    unsubscribed: bool,
}

fn name(part: Info<'_>) -> Option<String> {
    part.parse_key().map(|key| key.name.to_owned())
}

impl Tables {
    /// Takes a message that was written.
    pub(super) fn learn(&mut self, message: &Message<'_>) {
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

    /// Returns the layout of a topic's rows.
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

    /// Returns the id for a new subscription, if it may be written.
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
            return refuse("it is subscribed already");
        }
        match u16::try_from(self.topics.len()) {
            Ok(msg_id) => Ok(msg_id),
            Err(_) => refuse("all 65536 ids are in use"),
        }
    }

    /// Refuses formats that no reader could use, subscribed or not.
    pub(super) fn check_formats(&mut self) -> Result<(), UlogError> {
        for name in &self.format_names {
            self.formats.layout(name, &Limits::default()).map_err(|why| bad_format(name, why.to_string()))?;
        }
        Ok(())
    }
}
