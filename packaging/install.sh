#!/bin/sh
# Installs the program rovelog from the archives of a release, for Linux and macOS:
#
#   curl -fsSL https://raw.githubusercontent.com/rovelog/rovelog/main/packaging/install.sh | sh
#
# ROVELOG_VERSION   version to install, such as 0.1.0; default: the latest release
# ROVELOG_PREFIX    folder into whose subfolder bin/ the program is written; default: ~/.local
# ROVELOG_URL       folder with the archives and SHA256SUMS; default: the release on GitHub
set -eu

fail() {
    echo "rovelog is not installed: $1" >&2
    exit 1
}

case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) target=x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m); cargo install rovelog-cli builds it" ;;
esac
releases=https://github.com/rovelog/rovelog/releases
version=${ROVELOG_VERSION:-}
if [ -z "$version" ]; then
    # The address of the latest release redirects to its tag.
    latest=$(curl -fsSLI -o /dev/null -w '%{url_effective}' "$releases/latest") ||
        fail "the latest version is unknown; set ROVELOG_VERSION"
    version=${latest##*/v}
fi
url=${ROVELOG_URL:-$releases/download/v$version}
archive=rovelog-$version-$target.tar.gz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for file in "$archive" SHA256SUMS; do
    curl -fsSL -o "$folder/$file" "$url/$file" || fail "$url/$file cannot be downloaded"
done
expected=$(grep "  $archive\$" "$folder/SHA256SUMS" | cut -d' ' -f1)
if command -v sha256sum >/dev/null; then
    found=$(sha256sum "$folder/$archive" | cut -d' ' -f1)
else
    found=$(shasum -a 256 "$folder/$archive" | cut -d' ' -f1)
fi
[ -n "$expected" ] && [ "$found" = "$expected" ] || fail "the checksum of $archive is wrong"
tar -xzf "$folder/$archive" -C "$folder"
program=$(find "$folder" -name rovelog -type f)
bin=${ROVELOG_PREFIX:-$HOME/.local}/bin
mkdir -p "$bin"
# A running program can be replaced, but not overwritten.
install -m 755 "$program" "$bin/rovelog.new"
mv "$bin/rovelog.new" "$bin/rovelog"
echo "installed $("$bin/rovelog" --version | head -n 1) in $bin"
case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "add this folder to PATH to call it by its name" ;;
esac
