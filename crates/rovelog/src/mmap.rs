//! Mapped files: the only module in the workspace with `unsafe`.
//!
//! A mapped file that another program shortens has pages without bytes, and reading one raises
//! `SIGBUS`. The handler here knows the mappings of this module. Either it ends the program with a
//! message ([`install_sigbus_handler`]), or it puts zeros in place of the pages and notes it in the
//! mapping's [`Watched`], so that the reader of the log can return an error. Faults at other
//! addresses go to the previously installed handler.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rovelog_core::Bytes;

use crate::watch::Watched;

/// Maps `file` for reading; `path` is its location.
#[allow(unsafe_code)]
pub(crate) fn map(file: &File, path: &Path) -> std::io::Result<(Bytes, Arc<Watched>)> {
    // SAFETY: the map is private to this process and only ever read, as `&[u8]`. What Rust cannot
    // rule out is that another process changes the file meanwhile. A log that is written to gives
    // other bytes, and every reader takes any bytes: none relies on reading the same value twice
    // for memory safety. A log that grows is read up to the length that it had. A log that is
    // shortened raises SIGBUS: see the module; the feature `mmap` can be left out.
    let map = unsafe { Mmap::map(file)? };
    let watched = Arc::new(Watched::new(file, path, map.len() as u64)?);
    #[cfg(unix)]
    let held = Held { _slot: signal::Slot::take(&map, &watched), _watched: Arc::clone(&watched), map };
    #[cfg(not(unix))]
    let held = map;
    Ok((Bytes::from_owner(held), watched))
}

/// A mapping that the handler knows. The slot is released before the mapping.
#[cfg(unix)]
struct Held {
    _slot: signal::Taken,
    _watched: Arc<Watched>,
    map: Mmap,
}

#[cfg(unix)]
impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Ends this process with a message and exit code 1, instead of a crash, when a mapped log is
/// shortened while it is read. Intended for programs whose main task is reading logs, because it
/// handles the signal `SIGBUS`. Does nothing on systems without that signal.
pub fn install_sigbus_handler() {
    #[cfg(unix)]
    signal::end();
}

/// Handles `SIGBUS`, so that a shortened log reads as zeros with a note in its [`Watched`].
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

    use crate::watch::Watched;

    /// All slots, newest first. They are reused and never freed, because the handler may read any
    /// of them.
    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
    /// True if a fault ends the program.
    static ENDS: AtomicBool = AtomicBool::new(false);
    /// The size of a page; 0 until the handler is installed.
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    /// The previously installed handler: boxed and never freed, because our handler may read it.
    static BEFORE: AtomicPtr<sigaction> = AtomicPtr::new(ptr::null_mut());
    /// The thread that is inside the previously installed handler.
    static CHAINED: AtomicUsize = AtomicUsize::new(0);

    /// A mapping, as the handler sees it: the handler must neither wait nor allocate.
    pub(super) struct Slot {
        taken: AtomicBool,
        /// Odd while the other fields change.
        version: AtomicUsize,
        start: AtomicUsize,
        end: AtomicUsize,
        shortened: AtomicPtr<AtomicBool>,
        next: AtomicPtr<Slot>,
    }

    /// A slot in use.
    pub(super) struct Taken(&'static Slot);

    impl Slot {
        /// Returns a slot for the mapping; `watched` must live as long as the slot.
        pub(super) fn take(map: &[u8], watched: &Arc<Watched>) -> Taken {
            let mut next = SLOTS.load(SeqCst);
            // SAFETY: slots are leaked boxes, so the pointer is null or good for ever.
            while let Some(slot) = unsafe { next.as_ref() } {
                if !slot.taken.swap(true, SeqCst) {
                    slot.set(map.as_ptr().addr(), map.len(), watched.flag());
                    return Taken(slot);
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
                    Ok(_) => return Taken(unsafe { &*slot }),
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
            // A slot that is being changed does not belong to the mapping being read.
            let same = version.is_multiple_of(2) && self.version.load(SeqCst) == version;
            (same && (start..end).contains(&address)).then_some((end, shortened))
        }
    }

    impl Drop for Taken {
        fn drop(&mut self) {
            self.0.set(0, 0, ptr::null());
            self.0.taken.store(false, SeqCst);
        }
    }

    pub(super) fn end() {
        ENDS.store(true, SeqCst);
        install();
    }

    /// Installs the handler, again if another one has replaced it.
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
            PAGE.store(usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096), SeqCst);
            BEFORE.store(Box::leak(Box::new(now)), SeqCst);
            let mut new = MaybeUninit::<sigaction>::zeroed().assume_init();
            new.sa_sigaction = ours;
            // Without SA_NODEFER, a signal that the previous handler raises again would wait until
            // we return.
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
                    if ENDS.load(SeqCst) {
                        say_and_end();
                    }
                    let page = PAGE.load(SeqCst);
                    let from = address & !(page - 1);
                    // The pages after the first page without bytes have none either.
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
            before(signal, info, context);
        }
    }

    /// Ends the program with a message.
    unsafe fn say_and_end() -> ! {
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
    unsafe fn before(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the structure was filled by the system and is never freed; it names a handler of
        // the kind that its flags tell; the calls are async-signal-safe.
        unsafe {
            let Some(before) = BEFORE.load(SeqCst).as_ref() else { return };
            let me = libc::pthread_self() as usize;
            let sent = (*info).si_code <= 0;
            // The previous handler may reinstall ours and raise the signal again, as Python's
            // faulthandler does.
            let again = CHAINED.swap(me, SeqCst) == me;
            if before.sa_sigaction == libc::SIG_IGN && sent {
                // Ignored, as without our handler.
            } else if again || [libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            } else if before.sa_flags & libc::SA_SIGINFO != 0 {
                type Informed = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                std::mem::transmute::<usize, Informed>(before.sa_sigaction)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(c_int)>(before.sa_sigaction)(signal);
            }
            CHAINED.store(0, SeqCst);
        }
    }
}

/// Ends this process with a message and exit code 1 where Rust would abort it, which happens when
/// memory runs out. Intended for programs whose main task is reading logs, because it handles the
/// signal `SIGABRT`. Does nothing on systems without that signal.
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
