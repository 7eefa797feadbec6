//! Tests of arguments, errors and lifetimes of the C interface.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use arrow_array::RecordBatchReader as _;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use rovelog_ffi::border::*;
use rovelog_ffi::{RovelogLog, RovelogStatus};
use rovelog_testing::{Log, ROSBAG, ULOG};

fn open(log: &Log, flags: u32) -> Option<Box<RovelogLog>> {
    let path = CString::new(log.path.as_os_str().as_bytes()).expect("a path has no NUL");
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
        assert_eq!((last_error(), rovelog_last_error_code()), ("the path is NULL".to_owned(), RovelogStatus::InvalidArgument));
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
    assert!(open(&ULOG.case("one-topic"), 2).is_none());
    assert_eq!(last_error(), "the flags 0x2 are unknown");
    assert!(open(&ROSBAG.case("version-2.1"), 0).is_none() || rovelog_last_error_code() == RovelogStatus::Ok);
    let log = open(&ULOG.case("one-topic"), 0);
    let log = log.as_deref();
    assert_eq!(rovelog_topic(log, 99, Some(&mut MaybeUninit::uninit())), RovelogStatus::InvalidArgument);
    assert_eq!(last_error(), "the log has no topic with the index 99; use an index below 1");
    assert_eq!(rovelog_topic(log, 0, None), RovelogStatus::InvalidArgument);
    assert_eq!(last_error(), "the pointer for the result is NULL");
    let wrong = select(&[c"no_such_field".as_ptr()], i64::MIN, i64::MAX);
    assert_eq!(stream(log, 0, Some(&wrong)).err(), Some(RovelogStatus::InvalidArgument));
    assert!(last_error().contains(" has no field no_such_field; use one of "), "{}", last_error());
    let null = select(&[ptr::null()], i64::MIN, i64::MAX);
    assert_eq!(stream(log, 0, Some(&null)).err(), Some(RovelogStatus::InvalidArgument));
    assert_eq!(last_error(), "the name of a field is NULL");
    // Another thread has its own last error.
    let other = std::thread::spawn(|| (rovelog_last_error_code(), last_error())).join().expect("no panic");
    assert_eq!(other, (RovelogStatus::Ok, String::new()));
}

#[test]
fn a_stream_stays_valid_after_its_log_was_closed() {
    let log = open(&ULOG.case("all-basic-types"), 0);
    let count = log.as_deref().map_or(0, |log| log.reader().topics()[0].count);
    let stream = stream(log.as_deref(), 0, None).expect("the topic has columns");
    rovelog_close(log);
    let read = std::thread::spawn(move || rows(stream)).join().expect("no panic");
    assert_eq!(read as u64, count);
    assert!(count > 0);
}

#[test]
fn a_selection_restricts_fields_and_times() {
    let log = open(&ULOG.case("all-basic-types"), 0);
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

/// A bag with a correct index and a damaged chunk: the problem is listed when the whole log was
/// read, and otherwise the stream ends with an error.
#[test]
fn no_loss_is_silent() {
    let bag = ROSBAG.case("v2.0+damaged-bytes-in-a-chunk");
    let whole = open(&bag, 0);
    assert!(rovelog_problem_count(whole.as_deref()) > 0);
    let topics = rovelog_topic_count(whole.as_deref());
    for topic in 0..topics {
        rows(stream(whole.as_deref(), topic, None).expect("the topic has columns"));
    }
    let indexed = open(&bag, ROVELOG_BY_INDEX);
    let known = rovelog_problem_count(indexed.as_deref());
    let lost = (0..topics).any(|topic| {
        let rows = stream(indexed.as_deref(), topic, None).expect("the topic has columns");
        rows.into_iter().any(|batch| batch.is_err_and(|error| error.to_string().contains("found only while reading")))
    });
    assert!(known > 0 || lost);
}

#[test]
#[expect(unsafe_code, reason = "the tests call the C interface")]
fn the_summary_is_json() {
    let log = open(&ULOG.case("damaged+garbage"), 0);
    let json = rovelog_info(log.as_deref());
    let info: serde_json::Value = serde_json::from_str(&text(json)).expect("it is JSON");
    // SAFETY: the text was returned by `rovelog_info`.
    unsafe { rovelog_free_text(json) };
    assert_eq!(info["format"]["id"], "ulog");
    assert_eq!(info["state"], "damaged");
    assert!(info["lost"]["bytes"].as_u64() > Some(0));
    assert_eq!(info["topics"].as_array().map(Vec::len), Some(rovelog_topic_count(log.as_deref())));
}
