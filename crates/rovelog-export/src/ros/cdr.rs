//! ROS 1 messages in the encoding of ROS 2: CDR, little endian. Each type is compiled once.
//!
//! Both store fields one after the other. CDR aligns numbers to their width, counted from the end
//! of a four-byte encoding header. Its strings end in a NUL that is counted in their length, and a
//! type without fields takes one byte.

use std::sync::Arc;

use rovelog::rosbag12::msg::{Array, Primitive};

use super::Line;

/// "CDR, little endian", and two bytes without options.
const ENCODING: [u8; 4] = [0, 1, 0, 0];

/// Maximum number of steps without bytes in a message.
const MAX_HOLLOW: usize = 1 << 12;

/// Maximum number of steps that are copied into the outer type; larger types are called.
const INLINE: usize = 256;

/// Compiled conversion for the messages of one type.
#[derive(Debug)]
pub(crate) struct Code(Arc<[Step]>);

#[derive(Clone, Debug)]
enum Step {
    /// Numbers of one width, the same in both.
    Numbers {
        width: usize,
        count: usize,
    },
    /// Bytes that ROS 2 has no place for.
    Skip(usize),
    /// In ROS 1 any value but 0 is true; CDR allows only 1.
    Bool,
    /// Unsigned seconds become signed.
    Time,
    /// Nanoseconds of either sign are normalised to 0 to 999 999 999.
    Duration,
    Text,
    /// A type without fields.
    Hollow,
    /// Elements: a fixed number of them, or a count in the message.
    Many(Option<u32>, Arc<[Step]>),
}

/// A message that ends inside a field, or claims more elements than it has bytes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut;

/// Values of a message that were not carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Number of times and durations whose seconds do not fit in 31 bits (after January 2038).
    pub(crate) times: u64,
    /// True if bytes follow the last field.
    pub(crate) surplus: bool,
}

impl Code {
    /// Compiles the type of a line.
    pub(crate) fn new(line: &Line<'_>) -> Self {
        let mut codes: Vec<Arc<[Step]>> = Vec::new();
        for (index, ty) in line.types().all().iter().enumerate() {
            let mut steps = Vec::new();
            for (number, (field, nested)) in ty.message().fields.iter().zip(ty.nested()).enumerate() {
                if line.is_header(index) && number == 0 {
                    steps.push(Step::Skip(4));
                    continue;
                }
                let one =
                    nested.map_or_else(|| primitive(&field.ty).into(), |index| Arc::clone(&codes[index]));
                add(&mut steps, field.array, one);
            }
            if steps.is_empty() && ty.message().fields.is_empty() {
                steps.push(Step::Hollow);
            }
            codes.push(steps.into());
        }
        Self(codes.pop().unwrap_or_default())
    }

    /// Writes a message to `out`, which is cleared first.
    pub(crate) fn convert(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<Left, Cut> {
        out.clear();
        out.extend_from_slice(&ENCODING);
        let hollow = MAX_HOLLOW + payload.len();
        let mut converter = Converter { payload, out, hollow, left: Left::default() };
        converter.run(&self.0)?;
        converter.left.surplus = !converter.payload.is_empty();
        Ok(converter.left)
    }
}

fn primitive(word: &str) -> [Step; 1] {
    let width = match Primitive::named(word) {
        Some(Primitive::Bool) => return [Step::Bool],
        Some(Primitive::Time) => return [Step::Time],
        Some(Primitive::Duration) => return [Step::Duration],
        Some(Primitive::String) => return [Step::Text],
        Some(Primitive::Int8 | Primitive::UInt8) | None => 1,
        Some(Primitive::Int16 | Primitive::UInt16) => 2,
        Some(Primitive::Int32 | Primitive::UInt32 | Primitive::Float32) => 4,
        Some(Primitive::Int64 | Primitive::UInt64 | Primitive::Float64) => 8,
    };
    [Step::Numbers { width, count: 1 }]
}

/// Adds a field to the steps of its type.
fn add(steps: &mut Vec<Step>, array: Array, one: Arc<[Step]>) {
    match (array, &*one) {
        (Array::Fixed(0), _) => {}
        (Array::Fixed(len), [Step::Numbers { width, count }]) => {
            let count = count.saturating_mul(usize::try_from(len).unwrap_or(usize::MAX));
            push(steps, Step::Numbers { width: *width, count });
        }
        (Array::One, one) if steps.len() + one.len() <= INLINE => {
            for step in one {
                push(steps, step.clone());
            }
        }
        (Array::One, _) => steps.push(Step::Many(Some(1), one)),
        (Array::Fixed(len), _) => steps.push(Step::Many(Some(len), one)),
        (Array::Any, _) => steps.push(Step::Many(None, one)),
    }
}

/// Adds a step; adjacent numbers of one width become one step.
fn push(steps: &mut Vec<Step>, step: Step) {
    match (steps.last_mut(), &step) {
        (Some(Step::Numbers { width, count }), Step::Numbers { width: same, count: more })
            if width == same =>
        {
            *count = count.saturating_add(*more);
        }
        _ => steps.push(step),
    }
}

struct Converter<'a> {
    /// Rest of the message.
    payload: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Remaining number of steps without bytes.
    hollow: usize,
    left: Left,
}

impl<'a> Converter<'a> {
    fn run(&mut self, steps: &[Step]) -> Result<(), Cut> {
        for step in steps {
            match step {
                Step::Numbers { width, count } => self.numbers(*width, *count)?,
                Step::Skip(bytes) => {
                    self.take(*bytes)?;
                }
                Step::Bool => {
                    let byte = u8::from(self.take(1)?[0] != 0);
                    self.out.push(byte);
                }
                Step::Time => {
                    let (sec, nsec) = (self.word()?, self.word()?);
                    self.left.times += u64::from(i32::try_from(sec).is_err());
                    self.words([sec, nsec]);
                }
                Step::Duration => self.duration()?,
                Step::Text => {
                    let len = self.word()?;
                    let text = self.take(len as usize)?;
                    self.words([len.checked_add(1).ok_or(Cut)?]);
                    self.out.extend_from_slice(text);
                    self.out.push(0);
                }
                Step::Hollow => self.out.push(0),
                Step::Many(count, element) => self.many(*count, element)?,
            }
        }
        Ok(())
    }

    fn many(&mut self, count: Option<u32>, element: &[Step]) -> Result<(), Cut> {
        let len = if let Some(len) = count {
            len
        } else {
            let len = self.word()?;
            self.words([len]);
            len
        } as usize;
        match element {
            _ if len == 0 => {}
            [Step::Numbers { width, count }] => self.numbers(*width, count.saturating_mul(len))?,
            _ => {
                // Elements without bytes can occur in any number; each other step takes at least a
                // byte.
                let steps = len.checked_mul(element.len()).ok_or(Cut)?;
                self.hollow = self.hollow.checked_sub(steps).ok_or(Cut)?;
                for _ in 0..len {
                    self.run(element)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn numbers(&mut self, width: usize, count: usize) -> Result<(), Cut> {
        let bytes = self.take(width.saturating_mul(count))?;
        self.align(width);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn duration(&mut self) -> Result<(), Cut> {
        let [sec, nsec] = [self.word()?, self.word()?].map(|word| i64::from(word.cast_signed()));
        let nanos = sec * 1_000_000_000 + nsec;
        let (sec, nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        self.left.times += u64::from(i32::try_from(sec).is_err());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "said where it does not fit"
        )]
        self.words([sec as u32, nsec as u32]);
        Ok(())
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], Cut> {
        let (taken, left) = self.payload.split_at_checked(len).ok_or(Cut)?;
        self.payload = left;
        Ok(taken)
    }

    #[inline]
    fn word(&mut self) -> Result<u32, Cut> {
        let (taken, left) = self.payload.split_first_chunk().ok_or(Cut)?;
        self.payload = left;
        Ok(u32::from_le_bytes(*taken))
    }

    #[inline]
    fn words<const N: usize>(&mut self, words: [u32; N]) {
        self.align(4);
        for word in words {
            self.out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Pads with zeros to a multiple of `width`, a power of two.
    #[inline]
    fn align(&mut self, width: usize) {
        let body = self.out.len() - ENCODING.len();
        self.out.resize(ENCODING.len() + body.next_multiple_of(width), 0);
    }
}
