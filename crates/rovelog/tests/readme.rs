//! Checks the table of formats in the README against the constants of the formats.

#[test]
fn the_readme_lists_every_format() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    for format in rovelog::FORMATS {
        let extensions: Vec<_> = format.extensions.iter().map(|ext| format!("`.{ext}`")).collect();
        let (id, extensions) = (format.id, extensions.join(", "));
        let row = format!("| {} | `{id}` | {} | {extensions} |", format.name, format.about);
        assert!(readme.contains(&row), "README.md lacks the row {row}");
    }
}
