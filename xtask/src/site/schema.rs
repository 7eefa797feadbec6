//! Writes the documentation page about JSON output from the JSON schema.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the page about JSON output. It contains a table of keys for each definition in the JSON
/// schema.
pub(super) fn page(schema: &Value) -> String {
    let mut page = String::from(
        "# JSON\n\nThe documents of `rovelog -f json`, from the [JSON schema](schemas/rovelog.schema.json). \
         Times in nanoseconds are text, so that no reader rounds them. A key that may be null is always \
         present.",
    );
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let _ = writeln!(page, " {}", text(&schema["description"]));
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        let _ = writeln!(page, "\n## {name}\n");
        if let Some(about) = definition["description"].as_str() {
            let _ = writeln!(page, "{about}.\n");
        }
        let Some(keys) = definition["properties"].as_object() else {
            let _ = writeln!(page, "{}", type_name(definition));
            continue;
        };
        let explained = keys.values().any(|value| value["description"].is_string());
        page += if explained {
            "| key | type | meaning |\n|---|---|---|\n"
        } else {
            "| key | type |\n|---|---|\n"
        };
        for (key, value) in keys {
            let meaning =
                if explained { format!(" {} |", text(&value["description"])) } else { String::new() };
            let _ = writeln!(page, "| `{key}` | {} |{meaning}", type_name(value));
        }
    }
    page
}

/// Returns a description of the type of a value.
fn type_name(value: &Value) -> String {
    let list = |values: &Value| {
        let values: Vec<_> = values.as_array().into_iter().flatten().map(type_name).collect();
        values.join(" or ")
    };
    if let Some(name) = value["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{name})");
    }
    if let Some(texts) = value["enum"].as_array() {
        return texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
    }
    if !value["const"].is_null() {
        return format!("`{}`", value["const"]);
    }
    for key in ["anyOf", "oneOf"] {
        if value[key].is_array() {
            return list(&value[key]);
        }
    }
    match (value["type"].as_str(), &value["items"]) {
        (Some("array"), Value::Object(_)) => format!("list of {}", type_name(&value["items"])),
        (Some("array"), _) => format!("array: {}", list(&value["prefixItems"])),
        (Some("object"), _) if value["additionalProperties"].is_object() => {
            format!("object of {}", type_name(&value["additionalProperties"]))
        }
        (Some(name), _) => name.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_in_words() {
        let schema = serde_json::json!({
            "description": "About.",
            "$defs": { "a": { "properties": {
                "b": { "anyOf": [{ "$ref": "#/$defs/count" }, { "type": "null" }], "description": "C" },
                "d": { "type": "array", "items": { "type": "string" } },
            } } },
        });
        let page = page(&schema);
        assert!(page.contains("| `b` | [count](#count) or null | C |"), "{page}");
        assert!(page.contains("| `d` | list of string |  |"), "{page}");
    }
}
