//! Tests of arguments, errors and lifetimes of the C interface. Miri runs them, too; see the section
//! *Undefined behavior* of `docs/internals/reliability.md`.
#![cfg(unix)]

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use arrow_array::RecordBatchReader as _;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_schema::ArrowError;
use rovelog_ffi::border::*;
use rovelog_ffi::{RovelogLog, RovelogStatus};
use rovelog_testing::{ULOG, real, with_damaged_chunk};

fn open(path: &Path, flags: u32) -> Option<Box<RovelogLog>> {
    let path = CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL");
    // SAFETY: the path is a C string.
    #[expect(unsafe_code, reason = "the tests call the C interface")]
    unsafe {
        rovelog_open(path.as_ptr(), flags)
    }
}

#[expect(unsafe_code, reason = "the tests call the C interface")]
fn text(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library returns C strings.
    unsafe { CStr::from_ptr(text) }.to_str().expect("texts are UTF-8").to_owned()
}

fn last_error() -> String {
    text(rovelog_last_error_message())
}

#[expect(unsafe_code, reason = "the tests call the C interface")]
fn stream(
    log: Option<&RovelogLog>,
    topic: usize,
    select: Option<&RovelogSelect>,
) -> Result<ArrowArrayStreamReader, RovelogStatus> {
    let mut out = MaybeUninit::<FFI_ArrowArrayStream>::uninit();
    // SAFETY: the selections of the tests are valid, and the stream is only used after a success.
    unsafe {
        match rovelog_stream(log, topic, select, Some(&mut out)) {
            RovelogStatus::Ok => Ok(ArrowArrayStreamReader::try_new(out.assume_init()).expect("a schema")),
            status => Err(status),
        }
    }
}

fn rows(stream: ArrowArrayStreamReader) -> usize {
    stream.map(|batch| batch.expect("the rows are intact").num_rows()).sum()
}

fn select(fields: &[*const c_char], start_ns: i64, end_ns: i64) -> RovelogSelect {
    RovelogSelect { fields: fields.as_ptr(), field_count: fields.len(), start_ns, end_ns }
}

#[test]
#[expect(unsafe_code, reason = "the tests call the C interface")]
fn null_is_an_error_and_not_a_crash() {
    // SAFETY: all functions accept NULL.
    unsafe {
        assert!(rovelog_open(ptr::null(), 0).is_none());
        assert_eq!(
            (last_error(), rovelog_last_error_code()),
            ("the path is NULL".to_owned(), RovelogStatus::InvalidArgument)
        );
        assert_eq!(rovelog_find_topic(None, c"a".as_ptr(), None), RovelogStatus::InvalidArgument);
        assert_eq!(rovelog_stream(None, 0, None, None), RovelogStatus::InvalidArgument);
        rovelog_free_text(ptr::null_mut());
    }
    rovelog_close(None);
    assert!(rovelog_format(None).is_null());
    assert!(rovelog_info(None).is_null());
    assert_eq!(last_error(), "the log is NULL");
    assert_eq!((rovelog_topic_count(None), rovelog_problem_count(None)), (0, 0));
    assert_eq!(rovelog_topic(None, 0, None), RovelogStatus::InvalidArgument);
    assert_eq!(rovelog_problem(None, 0, None), RovelogStatus::InvalidArgument);
    assert_eq!(text(rovelog_version()), env!("CARGO_PKG_VERSION"));
}

#[test]
fn errors_name_the_cause_and_the_next_step() {
    assert!(open(&ULOG.case("one-topic").path, 2).is_none());
    assert_eq!(last_error(), "the flags 0x2 are unknown");
    let log = open(&ULOG.case("one-topic").path, 0);
    let log = log.as_deref();
    assert_eq!(rovelog_topic(log, 99, Some(&mut MaybeUninit::uninit())), RovelogStatus::InvalidArgument);
    assert_eq!(last_error(), "the log has no topic with the index 99; use an index below 1");
    assert_eq!(rovelog_topic(log, 0, None), RovelogStatus::InvalidArgument);
    assert_eq!(last_error(), "the pointer for the result is NULL");
    let refused = |field: *const c_char| {
        let fields = [field];
        stream(log, 0, Some(&select(&fields, i64::MIN, i64::MAX))).err()
    };
    assert_eq!(refused(c"no_such_field".as_ptr()), Some(RovelogStatus::InvalidArgument));
    assert!(last_error().contains(" has no field no_such_field; use one of "), "{}", last_error());
    assert_eq!(refused(ptr::null()), Some(RovelogStatus::InvalidArgument));
    assert_eq!(last_error(), "the name of a field is NULL");
    // Another thread has its own last error.
    let other = std::thread::spawn(|| (rovelog_last_error_code(), last_error())).join().expect("no panic");
    assert_eq!(other, (RovelogStatus::Ok, String::new()));
}

#[test]
#[expect(unsafe_code, reason = "the tests call the C interface")]
fn topics_and_problems_are_described() {
    let log = open(&ULOG.case("damaged+garbage").path, 0);
    let log = log.as_deref();
    let reader = log.expect("it is open").reader();
    let (topic, problem) = (&reader.topics()[0], &reader.diagnostics().list()[0]);
    let name = CString::new(topic.name.as_str()).expect("a name has no NUL");
    let (mut index, mut a_topic, mut a_problem) =
        (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the name is a C string. The results are only used after a success.
    let (index, a_topic, a_problem) = unsafe {
        assert_eq!(rovelog_find_topic(log, name.as_ptr(), Some(&mut index)), RovelogStatus::Ok);
        assert_eq!(rovelog_topic(log, 0, Some(&mut a_topic)), RovelogStatus::Ok);
        assert_eq!(rovelog_problem(log, 0, Some(&mut a_problem)), RovelogStatus::Ok);
        (index.assume_init(), a_topic.assume_init(), a_problem.assume_init())
    };
    assert_eq!((index, text(a_topic.name), a_topic.records), (0, topic.name.clone(), topic.count));
    assert_eq!((text(a_problem.code), a_problem.start), (problem.rule.code.to_owned(), problem.range.start));
    assert_eq!(text(rovelog_format(log)), "ulog");
}

#[test]
fn a_stream_stays_valid_after_its_log_was_closed() {
    let log = open(&ULOG.case("all-basic-types").path, 0);
    let count = log.as_deref().map_or(0, |log| log.reader().topics()[0].count);
    let stream = stream(log.as_deref(), 0, None).expect("the topic has columns");
    rovelog_close(log);
    let read = std::thread::spawn(move || rows(stream)).join().expect("no panic");
    assert_eq!(read as u64, count);
    assert!(count > 0);
}

#[test]
fn a_selection_restricts_fields_and_times() {
    let log = open(&ULOG.case("all-basic-types").path, 0);
    let log = log.as_deref();
    let all = stream(log, 0, None).expect("the topic has columns").schema();
    let field = CString::new(all.field(2).name().as_str()).expect("a name has no NUL");
    let topic = &log.expect("it is open").reader().topics()[0];
    let (first, last) = (topic.first.expect("a time").nanos, topic.last.expect("a time").nanos);
    assert!(first < last);
    let one = stream(log, 0, Some(&select(&[field.as_ptr()], i64::MIN, last))).expect("the field exists");
    let schema = one.schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["t_ns", all.field(2).name()]);
    assert_eq!(rows(one) as u64, topic.count - 1);
    let none = stream(log, 0, Some(&select(&[], i64::MIN, first))).expect("times only");
    assert_eq!((none.schema().fields().len(), rows(none)), (1, 0));
}

/// Returns true if the stream of any topic ends with an error about lost records.
fn a_stream_reports_loss(log: Option<&RovelogLog>) -> bool {
    let topics = (0..rovelog_topic_count(log)).filter_map(|topic| stream(log, topic, None).ok());
    let is_loss = |error: ArrowError| error.to_string().contains("found only while reading");
    topics.into_iter().any(|mut rows| rows.any(|batch| batch.is_err_and(is_loss)))
}

/// A large bag with a correct index and one wrong byte. If it is opened by its index, the damage is
/// found only while a stream is read, which then ends with an error. If it is opened completely,
/// the damage is listed as a problem, and the streams have no error.
#[test]
#[cfg_attr(miri, ignore = "Miri cannot map the bag into memory")]
fn no_loss_is_silent() {
    let Some(folder) = real("rosbag20") else { return };
    let bytes = fs::read(folder.join("real_imu_navsat_bz2_2015.bag")).expect("the bag is readable");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged.bag");
    fs::write(&path, with_damaged_chunk(&bytes, 2)).expect("the target folder is writable");
    let (whole, indexed) = (open(&path, 0), open(&path, ROVELOG_BY_INDEX));
    let (whole, indexed) = (whole.as_deref(), indexed.as_deref());
    assert_eq!(rovelog_problem_count(indexed), 0);
    assert!(a_stream_reports_loss(indexed));
    assert!(rovelog_problem_count(whole) > 0);
    assert!(!a_stream_reports_loss(whole));
}

#[test]
#[expect(unsafe_code, reason = "the tests call the C interface")]
fn the_summary_is_json() {
    let log = open(&ULOG.case("damaged+garbage").path, 0);
    let json = rovelog_info(log.as_deref());
    let info: serde_json::Value = serde_json::from_str(&text(json)).expect("it is JSON");
    // SAFETY: the text was returned by `rovelog_info`.
    unsafe { rovelog_free_text(json) };
    assert_eq!(info["format"]["id"], "ulog");
    assert_eq!(info["state"], "damaged");
    assert!(info["lost"]["bytes"].as_u64() > Some(0));
    assert_eq!(info["topics"].as_array().map(Vec::len), Some(rovelog_topic_count(log.as_deref())));
}
