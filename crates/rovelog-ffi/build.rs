//! Sets linker options of the C library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    // Programs that are linked with the library store this name. Without it, they would store the
    // path of the file on the machine where they were linked.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librovelog.so.0");
    // The signal handler for shortened files must stay loaded, even if the program closes the
    // library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
