//! Memory-mapped files. This is the only module of this crate with `unsafe`.
//!
//! If another program shortens a mapped file, the pages after its new end have no data. Reading
//! such a page raises `SIGBUS`, which ends the program by default. The handler in this module has
//! two modes:
//!
//! - [`install_sigbus_handler`] ends the program with a message.
//! - [`survive_shortened_logs`] replaces the pages by zeros and sets the flag in the
//!   [`WatchedFile`] of the mapping. The reader of the log then returns an error.
//!
//! For example, a log of 10 MiB is mapped, and another program shortens it to 4 MiB. A read at 5
//! MiB faults. The handler finds the slot of the mapping, maps 5 MiB of zeros from there to its
//! end, sets the flag and returns. The read is repeated and gives zeros.
//! [`Watch::check`](crate::Watch::check) finds the flag.
//!
//! A signal handler can interrupt a program anywhere, so it must not lock or allocate. The mappings
//! are therefore listed in slots that consist of atomics and are never freed. Faults at other
//! addresses are passed to the previous handler.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rovelog_core::Bytes;

use crate::watch::WatchedFile;

/// Memory-maps `file` for reading. `path` is the path of the file, which is used to check the
/// length of the file later.
#[allow(unsafe_code)]
pub(crate) fn map(file: &File, path: &Path) -> std::io::Result<(Bytes, Arc<WatchedFile>)> {
    // SAFETY: the map is private to this process, and is only read, as `&[u8]`. Rust cannot prevent
    // another process from changing the file in the meantime:
    // - If the process overwrites parts of the log, other bytes are read. The memory safety of a
    //   reader does not depend on reading the same value twice.
    // - If the log grows, it is read up to its old length.
    // - If the log is shortened, SIGBUS is raised and handled as described in the module. The
    //   feature `mmap` can be disabled where this is not acceptable.
    let map = unsafe { Mmap::map(file)? };
    let watched = Arc::new(WatchedFile::new(file, path, map.len() as u64)?);
    #[cfg(unix)]
    let mapping = Mapping { _slot: signal::Slot::take(&map, &watched), _watched: Arc::clone(&watched), map };
    #[cfg(not(unix))]
    let mapping = map;
    Ok((Bytes::from_owner(mapping), watched))
}

/// A memory mapping that is listed for the signal handler. The slot is the first field, because it
/// must be released before the memory is unmapped.
#[cfg(unix)]
struct Mapping {
    /// Slot that lists the mapping for the signal handler.
    _slot: signal::SlotGuard,
    /// Owner of the flag to which the slot points.
    _watched: Arc<WatchedFile>,
    /// The mapped memory.
    map: Mmap,
}

#[cfg(unix)]
impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Installs a handler for `SIGBUS` that ends this process with a message and exit code 1 if a
/// mapped log is shortened while it is read. It is intended for programs whose main task is reading
/// logs. The function does nothing on systems without this signal.
pub fn install_sigbus_handler() {
    #[cfg(unix)]
    signal::end();
}

/// Installs a handler for `SIGBUS` that maps zeros in place of the missing pages of a shortened log
/// and sets the flag in its [`WatchedFile`].
pub(crate) fn survive_shortened_logs() {
    #[cfg(unix)]
    signal::install();
}

#[cfg(unix)]
#[allow(unsafe_code)]
mod signal {
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
    use std::sync::{Arc, Mutex};

    use libc::{c_int, c_void, sigaction, siginfo_t};
    use rovelog_core::internal::parallel::lock;

    use crate::watch::WatchedFile;

    /// List of all slots, newest first. Slots are reused but never freed, because the handler may
    /// read any slot at any time.
    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
    /// True if a fault in a mapped log ends the program.
    static ENDS_PROGRAM: AtomicBool = AtomicBool::new(false);
    /// Size of a page in bytes, or 0 until the handler is installed.
    static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
    /// The handler that was installed before this handler. It is never freed, because the signal
    /// handler may read it at any time.
    static PREVIOUS: AtomicPtr<sigaction> = AtomicPtr::new(ptr::null_mut());
    /// Identifier of the thread that is running the previous handler. 0 if no thread is running it.
    static CHAINED_THREAD: AtomicUsize = AtomicUsize::new(0);

    /// A mapping in the list for the signal handler. All fields are atomics, because the handler
    /// must not lock or allocate.
    pub(super) struct Slot {
        /// True if the slot is in use for a mapping.
        taken: AtomicBool,
        /// Number of changes of the slot. It is odd while the following fields are being changed.
        version: AtomicUsize,
        /// Address of the first byte of the mapping.
        start: AtomicUsize,
        /// Address after the last byte of the mapping.
        end: AtomicUsize,
        /// Flag that the signal handler sets if the file was shortened.
        shortened: AtomicPtr<AtomicBool>,
        /// Next slot in the list.
        next: AtomicPtr<Slot>,
    }

    /// A slot that belongs to a mapping. Dropping it releases the slot.
    pub(super) struct SlotGuard(&'static Slot);

    impl Slot {
        /// Adds a mapping to the list for the signal handler. `watched` must live as long as the
        /// returned guard.
        pub(super) fn take(map: &[u8], watched: &Arc<WatchedFile>) -> SlotGuard {
            let mut next = SLOTS.load(SeqCst);
            // SAFETY: slots are leaked boxes, so the pointer is null or valid forever.
            while let Some(slot) = unsafe { next.as_ref() } {
                if !slot.taken.swap(true, SeqCst) {
                    slot.set(map.as_ptr().addr(), map.len(), watched.flag());
                    return SlotGuard(slot);
                }
                next = slot.next.load(SeqCst);
            }
            // No slot is free, so a new one is added at the head of the list.
            let slot: &'static mut Slot = Box::leak(Box::new(Self {
                taken: AtomicBool::new(true),
                version: AtomicUsize::new(0),
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                shortened: AtomicPtr::new(ptr::null_mut()),
                next: AtomicPtr::new(SLOTS.load(SeqCst)),
            }));
            slot.set(map.as_ptr().addr(), map.len(), watched.flag());
            let slot: *mut Slot = slot;
            loop {
                // SAFETY: the slot is a leaked box, so the pointer is valid forever.
                let first = unsafe { &(*slot).next }.load(SeqCst);
                match SLOTS.compare_exchange(first, slot, SeqCst, SeqCst) {
                    // SAFETY: the slot is a leaked box, so the pointer is valid forever.
                    Ok(_) => return SlotGuard(unsafe { &*slot }),
                    // SAFETY: the slot is a leaked box, so the pointer is valid forever.
                    Err(now) => unsafe { &(*slot).next }.store(now, SeqCst),
                }
            }
        }

        /// Sets the mapping of the slot. While the fields are being set, the version is odd, so
        /// that the signal handler ignores the slot.
        fn set(&self, start: usize, len: usize, shortened: *const AtomicBool) {
            self.version.fetch_add(1, SeqCst);
            self.start.store(start, SeqCst);
            self.end.store(start + len, SeqCst);
            self.shortened.store(shortened.cast_mut(), SeqCst);
            self.version.fetch_add(1, SeqCst);
        }

        /// If `address` is inside the mapping of the slot, returns the end of the mapping and its
        /// flag.
        fn of(&self, address: usize) -> Option<(usize, *mut AtomicBool)> {
            let version = self.version.load(SeqCst);
            let (start, end) = (self.start.load(SeqCst), self.end.load(SeqCst));
            let shortened = self.shortened.load(SeqCst);
            // A mapping that is being read cannot be changed at the same time. So if the slot is
            // being changed, it belongs to a different mapping.
            let same = version.is_multiple_of(2) && self.version.load(SeqCst) == version;
            (same && (start..end).contains(&address)).then_some((end, shortened))
        }
    }

    impl Drop for SlotGuard {
        fn drop(&mut self) {
            self.0.set(0, 0, ptr::null());
            self.0.taken.store(false, SeqCst);
        }
    }

    /// Installs the signal handler, and sets the mode in which a fault ends the program.
    pub(super) fn end() {
        ENDS_PROGRAM.store(true, SeqCst);
        install();
    }

    /// Installs the signal handler. If another handler has replaced it, it is installed again.
    pub(super) fn install() {
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _one = lock(&INSTALLING);
        let ours: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = handler;
        let ours = ours as libc::sighandler_t;
        // SAFETY: the structures are plain data, for which zeros are valid, and the calls fill
        // them. The handler only makes async-signal-safe calls.
        unsafe {
            let mut now = MaybeUninit::<sigaction>::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), now.as_mut_ptr()) != 0 {
                return;
            }
            let now = now.assume_init();
            if now.sa_sigaction == ours {
                return;
            }
            PAGE_SIZE.store(usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096), SeqCst);
            PREVIOUS.store(Box::leak(Box::new(now)), SeqCst);
            let mut new = MaybeUninit::<sigaction>::zeroed().assume_init();
            new.sa_sigaction = ours;
            // The flag SA_NODEFER is needed if the previous handler raises the signal again.
            // Without this flag, the signal would be blocked until our handler returns.
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigemptyset(&raw mut new.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const new, ptr::null_mut());
        }
    }

    /// The signal handler for `SIGBUS`.
    extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY:
        // - The system passes a valid structure, and slots are never freed.
        // - The flag lives as long as its mapping, and the mapping exists because it is being read.
        // - The pages of the mapping are replaced by pages of the same size and rights, so that no
        //   other memory changes.
        // - All calls are async-signal-safe.
        unsafe {
            // A signal that was sent with `kill` has no fault address.
            let address = if (*info).si_code > 0 { (*info).si_addr().addr() } else { 0 };
            let mut next = SLOTS.load(SeqCst);
            while let Some(slot) = next.as_ref() {
                if let Some((end, shortened)) = slot.of(address) {
                    if ENDS_PROGRAM.load(SeqCst) {
                        end_program();
                    }
                    let page = PAGE_SIZE.load(SeqCst);
                    let from = address & !(page - 1);
                    // If a page has no data, all pages after it in the file have no data either.
                    let zeros = libc::mmap(
                        ptr::with_exposed_provenance_mut(from),
                        (end - from).next_multiple_of(page),
                        libc::PROT_READ,
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                        -1,
                        0,
                    );
                    if zeros != libc::MAP_FAILED {
                        (*shortened).store(true, SeqCst);
                        return;
                    }
                }
                next = slot.next.load(SeqCst);
            }
            call_previous(signal, info, context);
        }
    }

    /// Ends the program with a message. It does not unwind the stack, because this is not possible
    /// in a signal handler.
    unsafe fn end_program() -> ! {
        const WHY: &[u8] = b"error: a log was shortened by another program while it was read; outputs are \
            incomplete\n  next: copy the log, then read the copy\n";
        // SAFETY: both calls are async-signal-safe, and WHY lives as long as the program.
        unsafe {
            libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
            libc::_exit(1)
        }
    }

    /// Passes the signal to the previous handler.
    #[allow(clippy::cast_possible_truncation, reason = "a thread's id is as wide as a pointer")]
    unsafe fn call_previous(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the structure was filled by the system and is never freed. Its flags determine
        // the signature of the handler, so the transmuted type is correct. All calls are
        // async-signal-safe.
        unsafe {
            let Some(previous) = PREVIOUS.load(SeqCst).as_ref() else { return };
            let me = libc::pthread_self() as usize;
            let sent = (*info).si_code <= 0;
            // The previous handler may reinstall this handler and raise the signal again, as
            // Python's faulthandler does. Calling the previous handler again would then lead to an
            // endless loop.
            let is_chained = CHAINED_THREAD.swap(me, SeqCst) == me;
            if previous.sa_sigaction == libc::SIG_IGN && sent {
                // The signal is ignored, as it would be without this handler.
            } else if is_chained || [libc::SIG_DFL, libc::SIG_IGN].contains(&previous.sa_sigaction) {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
                type Informed = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                std::mem::transmute::<usize, Informed>(previous.sa_sigaction)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(c_int)>(previous.sa_sigaction)(signal);
            }
            CHAINED_THREAD.store(0, SeqCst);
        }
    }
}

/// Installs a handler for `SIGABRT` that ends this process with a message and exit code 1. Rust
/// raises this signal if memory runs out. The handler is intended for programs whose main task is
/// reading logs. The function does nothing on systems without this signal.
#[allow(unsafe_code)]
pub fn install_abort_handler() {
    #[cfg(unix)]
    {
        extern "C" fn end(_: libc::c_int) {
            const WHY: &[u8] = b"error: the memory is not sufficient, or the line above states the \
                                 reason\n  next: give the program more memory, or first make a part of the \
                                 log with rovelog slice\n";
            // SAFETY: both calls are async-signal-safe, and WHY lives as long as the program.
            unsafe {
                libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
                libc::_exit(1);
            }
        }
        let end: extern "C" fn(libc::c_int) = end;
        // SAFETY: the handler only makes async-signal-safe calls, and never returns.
        unsafe { libc::signal(libc::SIGABRT, end as libc::sighandler_t) };
    }
}
