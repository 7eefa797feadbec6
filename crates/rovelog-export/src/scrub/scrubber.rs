//! The editor that a log passes its parts to.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use chrono::Datelike as _;
use rovelog::core::internal::edit::Part;
use rovelog::core::internal::layout::{Element, Layout, Len, Slot};
use rovelog::vel_format::gps::AngleUnit;
use rovelog::{AnyLog, Scalar};

use super::names;
use super::number::{Stored, Unit, coordinate_type, first, read, shift, shift_number};
use super::place::Place;
use super::report::{Action, Report};
use super::{ScrubOptions, text};

/// Size in degrees of a cell in which positions are counted.
const CELL: f64 = 0.1;

/// Maximum number of cells. A log that is made to need more memory has positions in more cells.
const MAX_CELLS: usize = 10_000;

/// Largest distance in kilometers at which a number is taken for a position of the log.
const NEAR_KM: f64 = 60.0;

/// Maximum number of elements of an array that are compared with positions.
const MAX_ELEMENTS: usize = 256;

/// The positions of a log.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// Unit of floating-point coordinates without a stated unit.
    unit: Unit,
    /// Number of positions in each cell, and the first of them.
    cells: BTreeMap<[i32; 2], (u64, Place)>,
    /// One position of each cell. Empty until all positions were found.
    known: Vec<Place>,
}

impl Survey {
    pub(super) fn new(log: &AnyLog) -> Self {
        let unit = match log {
            AnyLog::Vel(log) => match log.meaning().gps.unit {
                AngleUnit::Degrees => Unit::Degrees,
                AngleUnit::DegreesMinutes => Unit::Minutes,
                AngleUnit::Radians => Unit::Radians,
            },
            _ => Unit::Degrees,
        };
        Self { unit, cells: BTreeMap::new(), known: Vec::new() }
    }

    #[expect(clippy::cast_possible_truncation, reason = "degrees are small")]
    fn add(&mut self, place: Place) {
        let cell = [place.latitude, place.longitude].map(|degrees| (degrees / CELL).floor() as i32);
        if self.cells.len() < MAX_CELLS || self.cells.contains_key(&cell) {
            self.cells.entry(cell).or_insert((0, place)).0 += 1;
        }
    }

    pub(super) fn finish(&mut self) {
        self.known = self.cells.values().map(|(_, place)| *place).collect();
    }

    /// Returns the first position of the cell with most positions.
    pub(super) fn main(&self) -> Option<Place> {
        self.cells.values().rev().max_by_key(|(count, _)| *count).map(|(_, place)| *place)
    }

    pub(super) fn is_near(&self, place: Place) -> bool {
        // Comparing latitudes first is enough for most numbers.
        let near = |known: &&Place| (known.latitude - place.latitude).abs() < 1.0;
        self.known.iter().filter(near).any(|known| known.distance_km(place) < NEAR_KM)
    }

    fn has_latitude(&self, degrees: f64) -> bool {
        self.known.iter().any(|known| (known.latitude - degrees).abs() < 0.6)
    }
}

/// The treatment of a field of a struct.
#[derive(Clone, Copy, Debug)]
enum Task {
    Move {
        longitude: usize,
        stored: Stored,
        is_loose: bool,
    },
    Blank,
    MaskConsole,
    EditText,
    ShiftTime,
    ShiftNumber(Scalar),
    /// The year of a date. The numbers are the fields of the month and the day.
    ShiftDate {
        month: usize,
        day: usize,
    },
    Doubt(Scalar),
}

/// The tasks for a type of structs.
#[derive(Debug, Default)]
struct Plan {
    /// Indices of fields, and their tasks.
    tasks: Vec<(usize, Task)>,
    /// Fields with numbers that may be coordinates.
    numbers: Vec<(usize, Scalar)>,
}

/// Changes the parts of a log.
pub(super) struct Scrubber<'a> {
    options: &'a ScrubOptions,
    survey: &'a mut Survey,
    /// Plan of each layout, by its address.
    plans: HashMap<usize, Rc<Plan>>,
    report: Report,
    /// Number of structs of each layout, by its address.
    visits: HashMap<usize, u64>,
    /// Pairs of fields that were near a position, by topic and names.
    near: BTreeMap<[String; 2], NearPair>,
}

/// Two fields whose numbers were near a position of the log.
#[derive(Debug, Default)]
struct NearPair {
    /// Address of the layout.
    layout: usize,
    /// Number of structs in which they were near.
    count: u64,
}

/// A struct of a record that is edited.
struct Struct<'a> {
    topic: &'a str,
    path: &'a str,
    layout: &'a Layout,
    ranges: &'a [Range<usize>],
}

impl Struct<'_> {
    fn name(&self, field: usize) -> String {
        format!("{}{}", self.path, self.layout.schema().fields[field].name)
    }

    fn slot(&self, field: usize) -> &Slot {
        &self.layout.slots()[field]
    }

    /// Returns the range of the elements of a field, without the count before a list.
    fn elements(&self, field: usize) -> Range<usize> {
        let range = &self.ranges[field];
        (range.start + first(self.slot(field))).min(range.end)..range.end
    }
}

/// Returns whether a list of the user has `topic`, `topic.name` or `name`. The instance of a topic
/// can be left out.
fn lists(list: &[String], group: &str, name: &str) -> bool {
    let short = group.rsplit_once('/').filter(|(_, number)| number.parse::<u8>().is_ok());
    let groups = [Some(group), short.map(|(topic, _)| topic)];
    list.iter().any(|given| {
        given == name
            || groups.into_iter().flatten().any(|group| {
                given
                    .strip_prefix(group)
                    .is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.') == Some(name))
            })
    })
}

impl<'a> Scrubber<'a> {
    pub(super) fn new(options: &'a ScrubOptions, survey: &'a mut Survey) -> Self {
        let (plans, visits, near) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { options, survey, plans, report: Report::default(), visits, near }
    }

    /// Returns the report. Numbers that are near a position in nearly all records are doubtful.
    pub(super) fn report(mut self) -> Report {
        for ([topic, names], NearPair { layout, count }) in self.near {
            if count * 10 >= self.visits[&layout] * 9 {
                self.report.add(&topic, &names, Action::Doubtful, count);
            }
        }
        self.report
    }

    /// Changes a part of the log.
    pub(super) fn edit(&mut self, part: Part<'_>, bytes: &mut [u8]) {
        match part {
            Part::Start => {
                self.report = Report::default();
                self.near.clear();
                self.visits.clear();
            }
            Part::Fields { topic, layout } => self.record(topic, layout, bytes),
            Part::Opaque(topic) if lists(&self.options.keep, topic, "") => {
                self.report.add(topic, "", Action::Kept, 1);
            }
            Part::Opaque(topic) if lists(&self.options.blank, topic, "") => self.blank(topic, "", bytes),
            Part::Opaque(topic) if !bytes.is_empty() => self.report.add(topic, "", Action::Doubtful, 1),
            Part::Opaque(_) => {}
            Part::Value { kind, name, is_text } => self.value(kind, name, is_text, bytes),
            Part::Time(units) => {
                let units = i64::try_from(units).unwrap_or(i64::MAX);
                if shift(bytes, units, self.options.days) {
                    self.report.add("log", "time", Action::Shifted, 1);
                }
            }
            Part::Unreadable => self.unreadable(bytes),
        }
    }

    fn unreadable(&mut self, bytes: &mut [u8]) {
        if bytes.iter().any(|byte| *byte != 0) {
            bytes.fill(0);
            self.report.add("log", "bytes", Action::Unreadable, bytes.len() as u64);
        }
    }

    fn blank(&mut self, group: &str, name: &str, bytes: &mut [u8]) {
        if bytes.iter().any(|byte| *byte != 0) {
            bytes.fill(0);
            self.report.add(group, name, Action::Blanked, 1);
        }
    }

    /// Returns true if the user keeps a value. It is then reported.
    fn keeps(&mut self, group: &str, name: &str) -> bool {
        let keeps = lists(&self.options.keep, group, name);
        if keeps {
            self.report.add(group, name, Action::Kept, 1);
        }
        keeps
    }

    fn value(&mut self, kind: &str, name: &str, is_text: bool, bytes: &mut [u8]) {
        let is_place = kind == "parameter" && names::is_coordinate(name);
        if names::is_identity(name) || is_place || lists(&self.options.blank, kind, name) {
            if !self.keeps(kind, name) {
                self.blank(kind, name, bytes);
            }
        } else if is_text && !self.keeps(kind, name) {
            self.text(kind, name, bytes, kind == "console");
        }
    }

    fn text(&mut self, group: &str, name: &str, bytes: &mut [u8], is_console: bool) {
        let old = bytes.to_vec();
        if is_console && self.options.mask_texts {
            text::mask(bytes);
        } else {
            let (survey, positions) = (&mut *self.survey, self.options.positions);
            let is_survey = positions.is_none();
            let apply = |place: Place| {
                if is_survey {
                    survey.add(place);
                }
                positions.map_or(place, |positions| positions.apply(place))
            };
            text::edit_sentences(bytes, apply, self.options.days);
            text::mask_coordinates(bytes, |place| self.survey.is_near(place));
            text::mask_identities(bytes);
        }
        if *bytes != old {
            self.report.add(group, name, Action::Masked, 1);
        }
    }

    fn record(&mut self, topic: &str, layout: &Layout, bytes: &mut [u8]) {
        let end = layout.visit_structs(bytes, &mut |layout, path, bytes, ranges| {
            self.structure(&Struct { topic, path, layout, ranges }, bytes);
        });
        // A record that is too short for its layout is not edited completely.
        let rest = bytes.get_mut(end.unwrap_or(0)..).unwrap_or_default();
        self.unreadable(rest);
    }

    fn structure(&mut self, of: &Struct<'_>, bytes: &mut [u8]) {
        let address = std::ptr::from_ref(of.layout).addr();
        if !self.plans.contains_key(&address) {
            let plan = Rc::new(self.plan(of.layout));
            self.plans.insert(address, plan);
        }
        let plan = Rc::clone(&self.plans[&address]);
        if !self.options.blank.is_empty() {
            for field in 0..of.ranges.len() {
                let name = of.name(field);
                if lists(&self.options.blank, of.topic, &name)
                    && !matches!(of.slot(field).element, Element::Struct(_))
                {
                    self.blank_field(of, field, bytes);
                }
            }
        }
        for (field, task) in &plan.tasks {
            if self.options.keep.is_empty() || !self.keeps(of.topic, &of.name(*field)) {
                self.run(of, *field, *task, bytes);
            }
        }
        if !self.survey.known.is_empty() && !plan.numbers.is_empty() {
            *self.visits.entry(address).or_default() += 1;
            self.compare(of, &plan, bytes);
        }
    }

    /// Decides what is done to the fields of a struct.
    fn plan(&self, layout: &Layout) -> Plan {
        let fields = &layout.schema().fields;
        let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        let ty = &*layout.schema().name;
        let mut plan = Plan::default();
        let mut moved = Vec::new();
        for (at, (field, slot)) in layout.fields().enumerate() {
            let coordinate = coordinate_type(slot);
            let partner = coordinate.and_then(|_| names::partner(&names, at));
            let partner =
                partner.filter(|partner| coordinate_type(&layout.slots()[partner.index]) == coordinate);
            if let (Some(scalar), Some(partner)) = (coordinate, partner) {
                let stored = Stored { scalar, unit: Unit::of(field, scalar, self.survey.unit) };
                moved.extend([at, partner.index]);
                let (longitude, is_loose) = (partner.index, partner.is_loose);
                plan.tasks.push((at, Task::Move { longitude, stored, is_loose }));
            }
        }
        let is_moved = |at: usize| moved.contains(&at);
        let find = |name: &str| names.iter().position(|other| *other == name);
        for (at, (field, slot)) in layout.fields().enumerate() {
            let (name, is_text) = (&*field.name, matches!(slot.element, Element::Text(_) | Element::Char(_)));
            let is_number = matches!(slot.element, Element::Scalar(_) | Element::Byte);
            let is_image = self.options.drop_images && names::is_image(&names, name);
            let task = match (&slot.element, coordinate_type(slot)) {
                (Element::Struct(_), _) => None,
                _ if names::is_raw(ty, name) || is_image => Some(Task::Blank),
                _ if names::is_identity(name) && (is_text || is_number) => Some(Task::Blank),
                _ if is_text && names::is_console(ty, name) => Some(Task::MaskConsole),
                _ if is_text => Some(Task::EditText),
                (Element::Time, _) => Some(Task::ShiftTime),
                (Element::Scalar(scalar), _) if names::is_time(name) && slot.len == Len::One => {
                    Some(Task::ShiftNumber(*scalar))
                }
                (Element::Scalar(_), _) if name == "year" => {
                    find("month").zip(find("day")).map(|(month, day)| Task::ShiftDate { month, day })
                }
                (_, Some(scalar)) if names::is_coordinate(name) && !is_moved(at) => Some(Task::Doubt(scalar)),
                _ => None,
            };
            plan.tasks.extend(task.map(|task| (at, task)));
            // A moved position is far from all true positions.
            let unmoved = coordinate_type(slot).filter(|_| !is_moved(at));
            plan.numbers.extend(unmoved.map(|scalar| (at, scalar)));
        }
        plan
    }

    fn run(&mut self, of: &Struct<'_>, field: usize, task: Task, bytes: &mut [u8]) {
        let range = of.elements(field);
        match task {
            Task::Move { longitude, stored, is_loose } => {
                self.positions(of, [field, longitude], stored, is_loose, bytes);
            }
            Task::Blank => self.blank_field(of, field, bytes),
            Task::MaskConsole | Task::EditText => {
                let is_console = matches!(task, Task::MaskConsole);
                for text in texts(of.slot(field), range, bytes) {
                    self.text(of.topic, &of.name(field), &mut bytes[text], is_console);
                }
            }
            Task::ShiftTime | Task::ShiftNumber(_) | Task::ShiftDate { .. } => {
                if self.options.days != 0 && self.shift(of, range, task, bytes) {
                    self.report.add(of.topic, &of.name(field), Action::Shifted, 1);
                }
            }
            Task::Doubt(scalar) => {
                let mut values = bytes[range].chunks_exact(scalar.size()).map(|bytes| read(scalar, bytes));
                if values.any(|value| value != 0.0 && value.is_finite()) {
                    self.report.add(of.topic, &of.name(field), Action::Doubtful, 1);
                }
            }
        }
    }

    fn positions(
        &mut self,
        of: &Struct<'_>,
        [latitude, longitude]: [usize; 2],
        stored: Stored,
        is_loose: bool,
        bytes: &mut [u8],
    ) {
        let size = stored.scalar.size();
        let (mut north, mut east) = (of.elements(latitude), of.elements(longitude));
        if latitude == longitude {
            // An array has a latitude and a longitude.
            if north.len() != 2 * size {
                return;
            }
            (north.end, east.start) = (north.start + size, north.start + size);
        }
        for (north, east) in north.step_by(size).zip(east.step_by(size)) {
            let (north, east) = (north..north + size, east..east + size);
            let Some(place) = stored.place(&bytes[north.clone()], &bytes[east.clone()]) else {
                for (field, range) in [(latitude, north), (longitude, east)] {
                    let value = read(stored.scalar, &bytes[range]);
                    if !is_loose && value != 0.0 && value.is_finite() {
                        self.report.add(of.topic, &of.name(field), Action::Doubtful, 1);
                    }
                }
                continue;
            };
            if is_loose && !self.survey.is_near(place) {
                continue;
            }
            match self.options.positions {
                None => self.survey.add(place),
                Some(positions) => {
                    let new = positions.apply(place);
                    stored.write(new.latitude, &mut bytes[north]);
                    stored.write(new.longitude, &mut bytes[east]);
                    let names = format!("{}, {}", of.name(latitude), of.name(longitude));
                    self.report.add(of.topic, &names, Action::Moved, 1);
                }
            }
        }
    }

    /// Replaces the content of a field with zeros. The lengths of lists and texts stay the same.
    fn blank_field(&mut self, of: &Struct<'_>, field: usize, bytes: &mut [u8]) {
        let (slot, range) = (of.slot(field), of.elements(field));
        let ranges = match slot.element {
            Element::Text(_) => texts(slot, range, bytes),
            _ => vec![range],
        };
        for range in ranges {
            self.blank(of.topic, &of.name(field), &mut bytes[range]);
        }
    }

    /// Shifts a time of a record. Returns whether it has changed.
    fn shift(&self, of: &Struct<'_>, range: Range<usize>, task: Task, bytes: &mut [u8]) -> bool {
        let days = self.options.days;
        match task {
            Task::ShiftNumber(scalar) => shift_number(scalar, &mut bytes[range], days),
            Task::ShiftDate { month, day } => {
                shift_date([range, of.elements(month), of.elements(day)], days, bytes)
            }
            // The seconds of a time are its first four bytes.
            _ => {
                let times = range.step_by(2 * size_of::<u32>());
                times.filter(|at| shift(&mut bytes[*at..*at + 4], 1, days)).count() > 0
            }
        }
    }

    /// Looks for a latitude and a longitude near a position of the log among the numbers of a struct.
    fn compare(&mut self, of: &Struct<'_>, plan: &Plan, bytes: &[u8]) {
        for unit in Unit::ALL {
            let numbers = plan.numbers.iter().filter(|(_, scalar)| unit.suits(*scalar));
            let numbers = numbers.flat_map(|(field, scalar)| {
                let values = bytes[of.elements(*field)].chunks_exact(scalar.size()).take(MAX_ELEMENTS);
                values.map(|bytes| (*field, unit.degrees(read(*scalar, bytes))))
            });
            let latitudes = numbers.clone().filter(|(_, degrees)| self.survey.has_latitude(*degrees));
            let mut pairs = latitudes.flat_map(|north| numbers.clone().map(move |east| [north, east]));
            let near = pairs.find(|[(_, north), (_, east)]| {
                Place::new(*north, *east).is_some_and(|place| self.survey.is_near(place))
            });
            let Some([north, east]) = near.map(|pair| pair.map(|(field, _)| of.name(field))) else {
                continue;
            };
            if !lists(&self.options.keep, of.topic, &north) {
                let layout = std::ptr::from_ref(of.layout).addr();
                let pair = self.near.entry([of.topic.to_owned(), format!("{north}, {east}")]).or_default();
                *pair = NearPair { layout, count: pair.count + 1 };
            }
        }
    }
}

/// Returns the ranges of the texts in a field.
fn texts(slot: &Slot, range: Range<usize>, bytes: &[u8]) -> Vec<Range<usize>> {
    if !matches!(slot.element, Element::Text(_)) {
        return vec![range];
    }
    let (mut at, mut texts) = (range.start, Vec::new());
    while let Some(len) = bytes[at..range.end].first_chunk() {
        let start = at + size_of::<u32>();
        at = start.saturating_add(u32::from_le_bytes(*len) as usize).min(range.end);
        texts.push(start..at);
    }
    texts
}

/// Shifts a date that is stored in three integer fields.
fn shift_date(ranges: [Range<usize>; 3], days: i64, bytes: &mut [u8]) -> bool {
    let number = |range: &Range<usize>| {
        let mut wide = [0; 4];
        wide.get_mut(..range.len())?.copy_from_slice(&bytes[range.clone()]);
        Some(i32::from_le_bytes(wide))
    };
    let [Some(year), Some(month), Some(day)] = [0, 1, 2].map(|at| number(&ranges[at])) else { return false };
    let century = match year {
        ..80 => 2000,
        80..100 => 1900,
        _ => 0,
    };
    let Some(new) = text::shift_days(year.saturating_add(century), month, day, days) else { return false };
    // A year with two digits keeps two digits.
    let year = if century > 0 { new.year().rem_euclid(100) } else { new.year() };
    let new = [year, new.month().cast_signed(), new.day().cast_signed()];
    for (range, value) in ranges.into_iter().zip(new) {
        let len = range.len();
        bytes[range].copy_from_slice(&value.to_le_bytes()[..len]);
    }
    true
}
