//! Values of the library as Python objects.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rovelog::Value;

/// Returns a value as the usual Python object: int, float, str, bytes, list, dict, None.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(v) => v.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(v, _) => v.into_pyobject(py)?.into_any(),
        Value::UInt(v, _) => v.into_pyobject(py)?.into_any(),
        Value::F32(v) => f64::from(*v).into_pyobject(py)?.into_any(),
        Value::F64(v) => v.into_pyobject(py)?.into_any(),
        Value::Text(v) => v.into_pyobject(py)?.into_any(),
        Value::Bytes(v) => PyBytes::new(py, v).into_any(),
        Value::List(items) => PyList::new(py, items.iter().map(Item))?.into_any(),
        Value::Struct(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(&**name, to_python(py, value)?)?;
            }
            dict.into_any()
        }
        // Null, and types that are unknown here.
        _ => py.None().into_bound(py),
    })
}

/// A value to convert as an element of a list or a tuple.
pub(crate) struct Item<'a>(pub(crate) &'a Value);

impl<'py> IntoPyObject<'py> for Item<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        to_python(py, self.0)
    }
}

/// Returns named values as a dict.
pub(crate) fn map_to_python<'py>(
    py: Python<'py>,
    values: &BTreeMap<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in values {
        dict.set_item(name, to_python(py, value)?)?;
    }
    Ok(dict)
}
