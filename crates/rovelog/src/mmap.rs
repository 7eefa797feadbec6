//! Mapped files. This is the only module in the workspace with `unsafe`.
//!
//! If another program shortens a mapped file, pages of the mapping have no bytes any more, and
//! reading one raises `SIGBUS`. The handler in this module knows the mappings of this module. It
//! either ends the program with a message ([`install_sigbus_handler`]), or maps zeros in place of
//! the pages and sets the flag in the [`WatchedFile`] of the mapping, so that the reader of the log
//! can return an error. Faults at other addresses are passed to the previously installed handler.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rovelog_core::Bytes;

use crate::watch::WatchedFile;

/// Maps `file`, which is at `path`, for reading.
#[allow(unsafe_code)]
pub(crate) fn map(file: &File, path: &Path) -> std::io::Result<(Bytes, Arc<WatchedFile>)> {
    // SAFETY: the map is private to this process and is only read, as `&[u8]`. Rust cannot rule out
    // that another process changes the file meanwhile. If it writes to the log, other bytes are
    // read: this is safe, because no reader relies on reading the same value twice for memory
    // safety. If the log grows, it is read up to its old length. If the log is shortened, SIGBUS is
    // raised and handled, see the module. The feature `mmap` can be disabled.
    let map = unsafe { Mmap::map(file)? };
    let watched = Arc::new(WatchedFile::new(file, path, map.len() as u64)?);
    #[cfg(unix)]
    let mapping = Mapping { _slot: signal::Slot::take(&map, &watched), _watched: Arc::clone(&watched), map };
    #[cfg(not(unix))]
    let mapping = map;
    Ok((Bytes::from_owner(mapping), watched))
}

/// A mapping that the handler knows. Its slot must be released before the mapping, so it is the
/// first field.
#[cfg(unix)]
struct Mapping {
    _slot: signal::SlotGuard,
    _watched: Arc<WatchedFile>,
    map: Mmap,
}

#[cfg(unix)]
impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Installs a handler for `SIGBUS` that ends this process with a message and exit code 1 if a
/// mapped log is shortened while it is read. Intended for programs whose main task is reading logs.
/// Does nothing on systems without this signal.
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
    use std::sync::{Arc, Mutex, PoisonError};

    use libc::{c_int, c_void, sigaction, siginfo_t};

    use crate::watch::WatchedFile;

    /// List of all slots, newest first. Slots are reused but never freed, because the handler may
    /// read any of them at any time.
    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
    /// True if a fault in a mapping ends the program.
    static ENDS_PROGRAM: AtomicBool = AtomicBool::new(false);
    /// Size of a page in bytes; 0 until the handler is installed.
    static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
    /// The previously installed handler. Never freed, because our handler may read it at any time.
    static PREVIOUS: AtomicPtr<sigaction> = AtomicPtr::new(ptr::null_mut());
    /// Id of the thread that runs the previously installed handler; 0 if none does.
    static CHAINED_THREAD: AtomicUsize = AtomicUsize::new(0);

    /// The description of a mapping for the handler. It consists of atomics, because the handler
    /// must neither wait nor allocate.
    pub(super) struct Slot {
        taken: AtomicBool,
        /// Odd while the other fields are being changed.
        version: AtomicUsize,
        start: AtomicUsize,
        end: AtomicUsize,
        shortened: AtomicPtr<AtomicBool>,
        next: AtomicPtr<Slot>,
    }

    /// A slot in use. Dropping it releases the slot.
    pub(super) struct SlotGuard(&'static Slot);

    impl Slot {
        /// Returns a slot for the mapping. `watched` must live as long as the slot is in use.
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
                // SAFETY: as above.
                let first = unsafe { &(*slot).next }.load(SeqCst);
                match SLOTS.compare_exchange(first, slot, SeqCst, SeqCst) {
                    // SAFETY: as above.
                    Ok(_) => return SlotGuard(unsafe { &*slot }),
                    // SAFETY: as above.
                    Err(now) => unsafe { &(*slot).next }.store(now, SeqCst),
                }
            }
        }

        fn set(&self, start: usize, len: usize, shortened: *const AtomicBool) {
            self.version.fetch_add(1, SeqCst);
            self.start.store(start, SeqCst);
            self.end.store(start + len, SeqCst);
            self.shortened.store(shortened.cast_mut(), SeqCst);
            self.version.fetch_add(1, SeqCst);
        }

        /// Returns the end of the mapping and its flag, if the address is inside the mapping.
        fn of(&self, address: usize) -> Option<(usize, *mut AtomicBool)> {
            let version = self.version.load(SeqCst);
            let (start, end) = (self.start.load(SeqCst), self.end.load(SeqCst));
            let shortened = self.shortened.load(SeqCst);
            // A slot that is being changed cannot be the one of the mapping that is being read.
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

    pub(super) fn end() {
        ENDS_PROGRAM.store(true, SeqCst);
        install();
    }

    /// Installs the handler. Installs it again if another handler has replaced it.
    pub(super) fn install() {
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let ours: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = handler;
        let ours = ours as libc::sighandler_t;
        // SAFETY: the structures are plain data that the calls fill; the handler only makes
        // async-signal-safe calls.
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
            // Without SA_NODEFER, a signal that the previous handler raises again would be blocked
            // until our handler returns.
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigemptyset(&raw mut new.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const new, ptr::null_mut());
        }
    }

    extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system passes a valid structure; the slots are never freed; the flag lives as
        // long as its mapping, which is there because it is being read; its pages are replaced by
        // pages of the same size and rights, so no memory but the mapping itself changes. All calls
        // are async-signal-safe.
        unsafe {
            // A signal sent with `kill` has no address.
            let address = if (*info).si_code > 0 { (*info).si_addr().addr() } else { 0 };
            let mut next = SLOTS.load(SeqCst);
            while let Some(slot) = next.as_ref() {
                if let Some((end, shortened)) = slot.of(address) {
                    if ENDS_PROGRAM.load(SeqCst) {
                        end_program();
                    }
                    let page = PAGE_SIZE.load(SeqCst);
                    let from = address & !(page - 1);
                    // All pages after the first one without bytes have no bytes either.
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

    /// Ends the program with a message.
    unsafe fn end_program() -> ! {
        const WHY: &[u8] = b"error: a log was shortened by another program while it was read; outputs are \
            incomplete\n  next: copy the log, then read the copy\n";
        // SAFETY: both calls are async-signal-safe, and WHY lives as long as the program.
        unsafe {
            libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
            libc::_exit(1)
        }
    }

    /// Passes the signal to the previously installed handler.
    #[allow(clippy::cast_possible_truncation, reason = "a thread's id is as wide as a pointer")]
    unsafe fn call_previous(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the structure was filled by the system and is never freed; it names a handler of
        // the kind that its flags tell; the calls are async-signal-safe.
        unsafe {
            let Some(previous) = PREVIOUS.load(SeqCst).as_ref() else { return };
            let me = libc::pthread_self() as usize;
            let sent = (*info).si_code <= 0;
            // The previous handler may reinstall our handler and raise the signal again, as
            // Python's faulthandler does.
            let is_chained = CHAINED_THREAD.swap(me, SeqCst) == me;
            if previous.sa_sigaction == libc::SIG_IGN && sent {
                // The signal stays ignored, as it would be without our handler.
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
/// raises this signal if memory runs out. Intended for programs whose main task is reading logs.
/// Does nothing on systems without this signal.
#[allow(unsafe_code)]
pub fn install_abort_handler() {
    #[cfg(unix)]
    {
        extern "C" fn end(_: libc::c_int) {
            const WHY: &[u8] = b"error: out of memory, or what the line above says\n  \
                next: give the program more memory, or make a part of the log first: rovelog slice\n";
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
