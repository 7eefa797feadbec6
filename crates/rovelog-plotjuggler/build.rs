//! Sets linker options of the plug-in.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The signal handler for shortened files must stay loaded after the plug-in is closed.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
