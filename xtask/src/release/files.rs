//! Checks that all files that contain the version, or the name of a release archive, are up to
//! date.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// Targets for which archives are built. `.github/workflows/release.yml` contains the same list.
const TARGETS: &[&str] = &[
    "aarch64-apple-darwin",
    "aarch64-pc-windows-msvc",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
];

/// Files that contain the version, and the text around the version. `@` stands for the version.
const VERSIONS: &[(&str, &str)] = &[
    ("CHANGELOG.md", "\n## @"),
    ("CITATION.cff", "\nversion: @\n"),
    ("packaging/conda/recipe.yaml", "\n  version: \"@\"\n"),
    ("packaging/homebrew/rovelog.rb", "\n  version \"@\"\n"),
    ("packaging/aur/PKGBUILD", "\npkgver=@\n"),
    ("packaging/nix/package.nix", "\n  version = \"@\";\n"),
    ("packaging/scoop/rovelog.json", "\"version\": \"@\""),
    ("packaging/winget/Rovelog.Rovelog.yaml", "\nPackageVersion: @\n"),
    ("packaging/winget/Rovelog.Rovelog.installer.yaml", "\nPackageVersion: @\n"),
    ("packaging/winget/Rovelog.Rovelog.locale.en-US.yaml", "\nPackageVersion: @\n"),
    ("docs/guide/install.md", "rovelog-@-x86_64-unknown-linux-musl.tar.gz"),
];

/// Returns an error if a file contains another version, or the name of an archive that is not
/// built.
pub(super) fn check(root: &Path, version: &str) -> Result<()> {
    let read = |file: &str| fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"));
    for (file, around) in VERSIONS {
        let wanted = around.replace('@', version);
        ensure!(read(file)?.contains(&wanted), "{file} does not contain {wanted:?}");
    }
    // These files contain the version in many addresses.
    for file in ["packaging/scoop/rovelog.json", "packaging/winget/Rovelog.Rovelog.installer.yaml"] {
        let text = read(file)?;
        for start in ["rovelog-", "/v"] {
            let mut others = text.match_indices(start).map(|(at, _)| &text[at + start.len()..]);
            let is_other = |rest: &&str| rest.starts_with(char::is_numeric) && !rest.starts_with(version);
            ensure!(!others.any(|rest| is_other(&rest)), "{file} contains another version than {version}");
        }
    }
    let release = read(".github/workflows/release.yml")?;
    let formula = read("packaging/homebrew/rovelog.rb")?;
    for target in TARGETS {
        ensure!(release.contains(&format!("target: {target}\n")), "release.yml builds nothing for {target}");
        let is_brewed = target.contains("apple") || target.ends_with("-gnu");
        let has = formula.contains(&format!("rovelog-#{{version}}-{target}.tar.gz"));
        ensure!(has == is_brewed, "rovelog.rb: {target}");
    }
    let archives = release.matches("- target: ").count();
    ensure!(archives == TARGETS.len(), "release.yml has {archives} archives, not {}", TARGETS.len());
    // cargo-binstall, the container image and the package recipe contain the names and versions of
    // the archives.
    let manifest: toml::Table = read("crates/rovelog-cli/Cargo.toml")?.parse()?;
    let binstall = manifest["package"]["metadata"]["binstall"]["pkg-url"].as_str().unwrap_or_default();
    ensure!(
        binstall.ends_with("/v{ version }/rovelog-{ version }-{ target }.tar.gz"),
        "binstall: {binstall}"
    );
    let docker = read("packaging/Dockerfile")?;
    ensure!(
        docker.contains("FROM scratch\n") && docker.contains("-unknown-linux-musl"),
        "packaging/Dockerfile"
    );
    let recipe = read("packaging/conda/recipe.yaml")?;
    let toolchain = read("rust-toolchain.toml")?;
    let rust = toolchain.lines().find_map(|line| line.strip_prefix("channel = "));
    let rust = rust.context("rust-toolchain.toml names no channel")?.trim_matches('"');
    ensure!(recipe.contains(&format!("rust >={rust}")), "recipe.yaml: rust >={rust}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_files_of_a_release_agree() {
        let version = env!("CARGO_PKG_VERSION");
        super::check(&crate::root(), version).expect("the files agree");
        assert!(super::check(&crate::root(), "99.0.0").is_err());
    }

    #[test]
    fn every_loss_has_a_row_in_problems_md() {
        let read = |file: &str| std::fs::read_to_string(crate::root().join(file)).expect("the page exists");
        let codes = |text: &str| -> Vec<String> {
            let cells = text.lines().filter_map(|line| line.strip_prefix("| E-")?.split(' ').next());
            cells.map(str::to_owned).collect()
        };
        let losses = codes(&read("docs/reference/diagnostics.md"));
        assert!(losses.len() > 20);
        assert_eq!(codes(&read("docs/reference/problems.md")), losses);
    }
}
