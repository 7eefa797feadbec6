//! The software bill of materials for the program, in the format `CycloneDX` 1.5.

use anyhow::Result;
use serde_json::{Value, json};

use super::Version;

/// Returns the software bill of materials as JSON text.
pub(super) fn document(version: &Version, target: &str) -> Result<String> {
    let packages = version.built_from(target)?;
    let (ours, others): (Vec<&Value>, Vec<&Value>) =
        packages.into_iter().partition(|package| package["name"] == "rovelog-cli");
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component(ours.first().copied().unwrap_or(&Value::Null), "application") },
        "components": others.into_iter().map(|package| component(package, "library")).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn component(package: &Value, kind: &str) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    let address = format!("pkg:cargo/{name}@{version}");
    let mut component = json!({
        "type": kind,
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
        "licenses": [{ "expression": text("license").replace('/', " OR ") }],
    });
    if let Some(place) = package["repository"].as_str() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": place }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_a_package_url_and_a_license() {
        let package =
            json!({ "name": "clap", "version": "4.6.0", "license": "MIT/Apache-2.0", "repository": null });
        let component = component(&package, "library");
        assert_eq!(component["purl"], "pkg:cargo/clap@4.6.0");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert!(component.get("externalReferences").is_none());
    }
}
