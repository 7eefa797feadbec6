//! Converts ROS 1 messages to CDR, the encoding of ROS 2, in little-endian order.
//!
//! Both encodings store the fields of a message one after the other. CDR differs in three points:
//!
//! - Numbers are aligned to their width, counted from the end of a header of four bytes.
//! - Strings end with a NUL, which is included in their length.
//! - A type without fields has one byte.
//!
//! For example, a `uint8` of 7 and a `uint32` of 1 have 5 bytes in ROS 1: `07 01 00 00 00`. In CDR,
//! they have 12 bytes: the header `00 01 00 00`, `07`, three bytes of padding, and `01 00 00 00`.
//!
//! Each type is compiled once to a list of [`Step`]s, which are then executed for each message.
//! Adjacent numbers of the same width become one step, so that an image is copied in a few steps.

use std::sync::Arc;

use rovelog::Scalar;
use rovelog::rosbag12::msg::{Array, Primitive};

use super::ExportedType;

/// Header of a CDR message: the identifier of little-endian CDR, and two bytes of options.
const ENCODING: [u8; 4] = [0, 1, 0, 0];

/// Maximum number of steps in a message that do not read a byte, in addition to the length of the
/// message in bytes. Without a limit, a short message could declare billions of elements of a type
/// without fields.
const MAX_EMPTY_STEPS: usize = 1 << 12;

/// Maximum number of steps in a type after the steps of a nested type are copied into it. If the
/// nested type has too many steps, it is executed as a [`Step::Repeat`] instead, because copying
/// long lists of steps again and again could use too much memory.
const MAX_INLINED_STEPS: usize = 256;

/// Steps that convert the messages of a type from ROS 1 to CDR.
#[derive(Debug)]
pub(crate) struct CompiledType(Arc<[Step]>);

/// A step in the conversion of a message.
#[derive(Clone, Debug)]
enum Step {
    /// Copies several numbers of the same width.
    Numbers {
        /// Size in bytes of a number.
        width: usize,
        count: usize,
    },
    /// Skips this many bytes, which belong to a field that ROS 2 does not have.
    Skip(usize),
    /// Converts a boolean. In ROS 1, any byte other than 0 is true, but CDR only allows 1 for true.
    Bool,
    /// Converts a time. The seconds are unsigned in ROS 1 and signed in ROS 2.
    Time,
    /// Converts a duration. Nanoseconds may be negative in ROS 1, but not in ROS 2.
    Duration,
    /// Converts a string. CDR appends a NUL to it.
    Text,
    /// Writes the single byte that a type without fields has in CDR.
    Empty,
    /// Executes steps for each element of an array. If the number of elements is `None`, the number
    /// is read from the message.
    Repeat(Option<u32>, Arc<[Step]>),
}

/// Error for a message that ends within a field, or that declares more elements than it can
/// contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truncated;

/// Values of a message that ROS 2 cannot represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConversionLosses {
    /// Number of times and durations whose seconds exceed 31 bits. Such a time is after January
    /// 2038.
    pub(crate) times: u64,
    /// True if the message has bytes after its last field.
    pub(crate) surplus: bool,
}

impl CompiledType {
    /// Compiles the type of a topic.
    pub(crate) fn new(exported: &ExportedType<'_>) -> Self {
        // Nested types come before the types that contain them, so their steps are already known.
        let mut codes: Vec<Arc<[Step]>> = Vec::new();
        for (index, ty) in exported.types.all().iter().enumerate() {
            let mut steps = Vec::new();
            for (number, (field, nested)) in ty.message().fields.iter().zip(ty.nested()).enumerate() {
                if exported.is_header(index) && number == 0 {
                    // The first field of the standard header is `seq`, which ROS 2 does not have.
                    steps.push(Step::Skip(4));
                    continue;
                }
                let element =
                    nested.map_or_else(|| primitive(&field.ty).into(), |index| Arc::clone(&codes[index]));
                add(&mut steps, field.array, element);
            }
            if steps.is_empty() && ty.message().fields.is_empty() {
                steps.push(Step::Empty);
            }
            codes.push(steps.into());
        }
        Self(codes.pop().unwrap_or_default())
    }

    /// Clears `out` and writes the message to it after conversion to CDR.
    pub(crate) fn convert(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<ConversionLosses, Truncated> {
        out.clear();
        out.extend_from_slice(&ENCODING);
        let empty_steps = MAX_EMPTY_STEPS + payload.len();
        let mut converter = Converter { payload, out, empty_steps, losses: ConversionLosses::default() };
        converter.run(&self.0)?;
        converter.losses.surplus = !converter.payload.is_empty();
        Ok(converter.losses)
    }
}

/// Returns the step that converts a primitive type. `word` is the name of the type.
fn primitive(word: &str) -> [Step; 1] {
    [match Primitive::named(word) {
        Some(Primitive::Scalar(Scalar::Bool)) => Step::Bool,
        Some(Primitive::Scalar(scalar)) => Step::Numbers { width: scalar.size(), count: 1 },
        Some(Primitive::Time) => Step::Time,
        Some(Primitive::Duration) => Step::Duration,
        Some(Primitive::String) => Step::Text,
        None => Step::Numbers { width: 1, count: 1 },
    }]
}

/// Appends the steps for a field. `one` contains the steps for a single element of the field.
fn add(steps: &mut Vec<Step>, array: Array, one: Arc<[Step]>) {
    match (array, &*one) {
        (Array::Fixed(0), _) => {}
        (Array::Fixed(len), [Step::Numbers { width, count }]) => {
            let count = count.saturating_mul(usize::try_from(len).unwrap_or(usize::MAX));
            push(steps, Step::Numbers { width: *width, count });
        }
        (Array::One, one) if steps.len() + one.len() <= MAX_INLINED_STEPS => {
            for step in one {
                push(steps, step.clone());
            }
        }
        (Array::One, _) => steps.push(Step::Repeat(Some(1), one)),
        (Array::Fixed(len), _) => steps.push(Step::Repeat(Some(len), one)),
        (Array::Any, _) => steps.push(Step::Repeat(None, one)),
    }
}

/// Appends a step. If it copies numbers of the same width as the previous step, the two steps are
/// merged.
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

/// State while a message is converted.
struct Converter<'a> {
    /// Part of the ROS 1 message that has not been converted yet.
    payload: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Number of steps for array elements that may still be executed.
    empty_steps: usize,
    losses: ConversionLosses,
}

impl<'a> Converter<'a> {
    fn run(&mut self, steps: &[Step]) -> Result<(), Truncated> {
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
                    self.losses.times += u64::from(i32::try_from(sec).is_err());
                    self.words([sec, nsec]);
                }
                Step::Duration => self.duration()?,
                Step::Text => {
                    let len = self.word()?;
                    // In contrast to CDR, ROS 1 strings do not end with a NUL.
                    let text = self.take(len as usize)?;
                    self.words([len.checked_add(1).ok_or(Truncated)?]);
                    self.out.extend_from_slice(text);
                    self.out.push(0);
                }
                Step::Empty => self.out.push(0),
                Step::Repeat(count, element) => self.repeat(*count, element)?,
            }
        }
        Ok(())
    }

    fn repeat(&mut self, count: Option<u32>, element: &[Step]) -> Result<(), Truncated> {
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
                // The length of the message limits the steps that read a byte. Other steps have no
                // such limit, so all steps for array elements are counted.
                let steps = len.checked_mul(element.len()).ok_or(Truncated)?;
                self.empty_steps = self.empty_steps.checked_sub(steps).ok_or(Truncated)?;
                for _ in 0..len {
                    self.run(element)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn numbers(&mut self, width: usize, count: usize) -> Result<(), Truncated> {
        let bytes = self.take(width.saturating_mul(count))?;
        self.align(width);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Converts a duration, so that its nanoseconds are not negative. For example, -1 s and
    /// -500,000,000 ns become -2 s and 500,000,000 ns.
    fn duration(&mut self) -> Result<(), Truncated> {
        let [sec, nsec] = [self.word()?, self.word()?].map(|word| i64::from(word.cast_signed()));
        let nanos = sec * 1_000_000_000 + nsec;
        let (sec, nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        self.losses.times += u64::from(i32::try_from(sec).is_err());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "values that do not fit are counted"
        )]
        self.words([sec as u32, nsec as u32]);
        Ok(())
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let (taken, left) = self.payload.split_at_checked(len).ok_or(Truncated)?;
        self.payload = left;
        Ok(taken)
    }

    #[inline]
    fn word(&mut self) -> Result<u32, Truncated> {
        let (taken, left) = self.payload.split_first_chunk().ok_or(Truncated)?;
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

    /// Appends zeros until the length of the output, without the header, is a multiple of `width`.
    #[inline]
    fn align(&mut self, width: usize) {
        let body = self.out.len() - ENCODING.len();
        self.out.resize(ENCODING.len() + body.next_multiple_of(width), 0);
    }
}
