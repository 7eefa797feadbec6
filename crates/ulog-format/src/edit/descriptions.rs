//! Information, parameters and defaults of several logs, without repetitions.
//!
//! Implements rules M5 and M6 of docs/formats/ulog.md, section "Slicing and merging".

use std::collections::{HashMap, HashSet};

use crate::parameters::{Description, Section};
use crate::reader::UlogReader;
use crate::wire::{DefaultParameter, Info, Message, MultiInfo};

/// Key and value of an information message or a parameter.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Returns the information, the defaults and the initial parameters of a log.
///
/// If a key occurs several times, only its last message is returned. Each inner list contains one
/// message. A list of multi information is the exception: its inner list contains all of its
/// messages (rule D26 of docs/formats/ulog.md).
pub(super) fn descriptions(log: &UlogReader) -> Vec<Vec<Message<'_>>> {
    let mut groups: Vec<Vec<Message<'_>>> = Vec::new();
    let mut places = HashMap::new();
    for Description { message, section, .. } in log.descriptions() {
        let (types, part) = match message {
            Message::Parameter(_) if section != Section::Definitions => continue,
            Message::DefaultParameter(DefaultParameter { default_types, info }) => (default_types, info),
            Message::Parameter(part)
            | Message::Info(part)
            | Message::MultiInfo(MultiInfo { info: part, .. }) => (0, part),
            _ => continue,
        };
        let place = places.entry((message.msg_type(), types, name(part))).or_insert(groups.len());
        match (message, groups.get_mut(*place)) {
            (Message::MultiInfo(part), Some(list)) if part.is_continued != 0 => {
                list.push(message);
                continue;
            }
            (Message::MultiInfo(_), _) | (_, None) => {}
            (_, Some(earlier)) => earlier.clear(),
        }
        *place = groups.len();
        groups.push(vec![message]);
    }
    groups.retain(|messages| !messages.is_empty());
    groups
}

/// Returns the name in the key of a valid information message or parameter.
pub(super) fn name(part: Info<'_>) -> &[u8] {
    part.parse_key().map_or(part.key, |key| key.name.as_bytes())
}

fn pair(part: Info<'_>) -> Pair<'_> {
    (part.key, part.value)
}

/// Result of comparing messages of a log with the messages of earlier logs.
pub(super) struct Comparison<'a> {
    /// Messages that the merged log does not contain yet.
    pub(super) messages: Vec<Message<'a>>,
    /// Kind and key of a message that is not merged, because an earlier log has a different value
    /// for the key.
    pub(super) contradicts: Option<(&'static str, &'a [u8])>,
}

/// Values of the logs that were already merged.
#[derive(Default)]
pub(super) struct EarlierValues<'a> {
    /// Keys and values of information messages, by name.
    infos: HashMap<&'a [u8], Pair<'a>>,
    /// Keys and values of parameter defaults, by bit of `default_types` and name.
    defaults: HashMap<(u8, &'a [u8]), Pair<'a>>,
    /// Lists of multi information. Each list consists of its keys and values.
    lists: HashSet<Vec<Pair<'a>>>,
}

impl<'a> EarlierValues<'a> {
    /// Compares messages other than parameters with the values of earlier logs.
    pub(super) fn compare(&self, messages: &[Message<'a>]) -> Comparison<'a> {
        let (is_new, contradicts) = match *messages {
            [Message::Info(part)] => {
                let known = self.infos.get(name(part));
                let differs = known.is_some_and(|known| *known != pair(part));
                (known.is_none(), differs.then_some(("information", part.key)))
            }
            [Message::DefaultParameter(DefaultParameter { default_types, info })] => {
                let known = |bit: u8| self.defaults.get(&(bit, name(info)));
                let differs = |bit| known(bit).is_some_and(|known| *known != pair(info));
                let contradicts = bits(default_types).any(differs).then_some(("default", info.key));
                let default_types = bits(default_types).filter(|bit| known(*bit).is_none()).sum();
                let new = Message::DefaultParameter(DefaultParameter { default_types, info });
                let messages = if default_types == 0 { Vec::new() } else { vec![new] };
                return Comparison { messages, contradicts };
            }
            _ => (!self.lists.contains(&pairs(messages)), None),
        };
        Comparison { messages: if is_new { messages.to_vec() } else { Vec::new() }, contradicts }
    }

    /// Adds the values of a log after its messages were compared. If an earlier log has a value
    /// with the same name, the earlier value is kept.
    pub(super) fn extend(&mut self, groups: &[Vec<Message<'a>>]) {
        let mut defaults = HashMap::new();
        for messages in groups {
            match messages[..] {
                [Message::Info(part)] => {
                    self.infos.entry(name(part)).or_insert(pair(part));
                }
                [Message::DefaultParameter(DefaultParameter { default_types, info })] => {
                    defaults.extend(bits(default_types).map(|bit| ((bit, name(info)), pair(info))));
                }
                _ => {
                    self.lists.insert(pairs(messages));
                }
            }
        }
        for (default, value) in defaults {
            self.defaults.entry(default).or_insert(value);
        }
    }
}

/// Returns the bits that are set in `default_types`. The result contains 1 for the system-wide
/// default, and 2 for the default of the current setup.
fn bits(default_types: u8) -> impl Iterator<Item = u8> {
    [1, 2].into_iter().filter(move |bit| default_types & bit != 0)
}

/// Returns the keys and the values in a list of multi information messages.
fn pairs<'a>(list: &[Message<'a>]) -> Vec<Pair<'a>> {
    let parts = list.iter().filter_map(|message| match message {
        Message::MultiInfo(part) => Some(pair(part.info)),
        _ => None,
    });
    parts.collect()
}
