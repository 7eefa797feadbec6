//! Values of the library as Python objects.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
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

/// Returns the value that [`to_python`] makes this object of, except for the widths of numbers.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(v) = object.cast::<PyBool>() {
        return Ok(Value::Bool(v.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i64>() {
            Ok(v) => Ok(Value::Int(v, 64)),
            Err(_) => Ok(Value::UInt(object.extract()?, 64)),
        };
    }
    if let Ok(v) = object.cast::<PyFloat>() {
        return Ok(Value::F64(v.value()));
    }
    if let Ok(v) = object.cast::<PyString>() {
        return Ok(Value::Text(v.to_str()?.to_owned()));
    }
    if let Ok(v) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(v.as_bytes().to_vec()));
    }
    if let Ok(items) = object.cast::<PyList>() {
        return Ok(Value::List(items.iter().map(|item| from_python(&item)).collect::<PyResult<_>>()?));
    }
    let fields = object.cast::<PyDict>()?;
    let fields =
        fields.iter().map(|(name, value)| Ok((name.extract::<String>()?.into(), from_python(&value)?)));
    Ok(Value::Struct(fields.collect::<PyResult<_>>()?))
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
