//! What logs say of themselves, for a log made of several: each thing once.
//!
//! Rules M5 and M6 in docs/formats/ulog.md, "Slicing and merging".

use std::collections::{HashMap, HashSet};

use crate::parameters::Section;
use crate::reader::UlogReader;
use crate::wire::{DefaultParameter, Info, Message, MultiInfo};

/// A key and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Returns what a log says of itself, where it says it last: of each information, default and
/// initial parameter the last value, and all lists, each with all of its parts (D26).
pub(super) fn described(log: &UlogReader) -> Vec<Vec<Message<'_>>> {
    let mut said: Vec<Vec<Message<'_>>> = Vec::new();
    let mut places = HashMap::new();
    for (_, message, section) in log.described() {
        let (types, part) = match message {
            Message::Parameter(_) if section != Section::Definitions => continue,
            Message::DefaultParameter(DefaultParameter { default_types, info }) => (default_types, info),
            Message::Parameter(part)
            | Message::Info(part)
            | Message::MultiInfo(MultiInfo { info: part, .. }) => (0, part),
            _ => continue,
        };
        let place = places.entry((message.msg_type(), types, name(part))).or_insert(said.len());
        match (message, said.get_mut(*place)) {
            (Message::MultiInfo(part), Some(list)) if part.is_continued != 0 => {
                list.push(message);
                continue;
            }
            (Message::MultiInfo(_), _) | (_, None) => {}
            (_, Some(earlier)) => earlier.clear(),
        }
        *place = said.len();
        said.push(vec![message]);
    }
    said.retain(|messages| !messages.is_empty());
    said
}

/// Returns the name in the key of a message that was validated.
pub(super) fn name(part: Info<'_>) -> &[u8] {
    part.parse_key().map_or(part.key, |key| key.name.as_bytes())
}

fn pair(part: Info<'_>) -> Pair<'_> {
    (part.key, part.value)
}

/// What is new in something that a log says.
pub(super) struct New<'a> {
    /// What the merged log does not have yet.
    pub(super) messages: Vec<Message<'a>>,
    /// What kind of thing an earlier log says otherwise, and its key.
    pub(super) contradicts: Option<(&'static str, &'a [u8])>,
}

/// What the logs before the one at hand say.
#[derive(Default)]
pub(super) struct Known<'a> {
    infos: HashMap<&'a [u8], Pair<'a>>,
    /// By name, for each bit of `default_types`.
    defaults: HashMap<(u8, &'a [u8]), Pair<'a>>,
    lists: HashSet<Vec<Pair<'a>>>,
}

impl<'a> Known<'a> {
    /// Returns what is new in something that is no parameter.
    pub(super) fn compare(&self, said: &[Message<'a>]) -> New<'a> {
        let (is_new, contradicts) = match *said {
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
                return New { messages, contradicts };
            }
            _ => (!self.lists.contains(&pairs(said)), None),
        };
        New { messages: if is_new { said.to_vec() } else { Vec::new() }, contradicts }
    }

    /// Takes what a log says: it is before all that follow.
    pub(super) fn extend(&mut self, said: &[Vec<Message<'a>>]) {
        let mut defaults = HashMap::new();
        for messages in said {
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

/// The system-wide default, and that of the current setup.
fn bits(default_types: u8) -> impl Iterator<Item = u8> {
    [1, 2].into_iter().filter(move |bit| default_types & bit != 0)
}

fn pairs<'a>(list: &[Message<'a>]) -> Vec<Pair<'a>> {
    let parts = list.iter().filter_map(|message| match message {
        Message::MultiInfo(part) => Some(pair(part.info)),
        _ => None,
    });
    parts.collect()
}
