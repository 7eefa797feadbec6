#!/bin/bash -eu
# Builds all fuzz targets to $OUT, each with its seeds and its options. ClusterFuzzLite and OSS-Fuzz
# run this script in their image, which sets SRC, OUT and the compiler flags.

# The toolchain of the image replaces the one in rust-toolchain.toml, because cargo-fuzz needs
# nightly Rust.
export RUSTUP_TOOLCHAIN="${RUSTUP_TOOLCHAIN:-nightly}"

cd "$SRC/rovelog"
cargo fuzz build -O --debug-assertions

built=${CARGO_TARGET_DIR:-fuzz/target}/x86_64-unknown-linux-gnu/release
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "$built/$target" "$OUT/"
    seeds=$(mktemp -d)
    tar -xzf "fuzz/seeds/$target.tar.gz" -C "$seeds"
    zip --quiet --junk-paths --recurse-paths "$OUT/${target}_seed_corpus.zip" "$seeds"
    rm -r "$seeds"
    # Small inputs run faster, and the first kilobytes of a log already contain its definitions.
    printf '[libfuzzer]\nmax_len = 8192\ntimeout = 20\n' > "$OUT/$target.options"
done
