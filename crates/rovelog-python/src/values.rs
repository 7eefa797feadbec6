//! Conversion between the values of records and Python objects.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use rovelog::Value;

/// Converts a value to a Python object: bool, int, float, str, bytes, list, dict or None.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(v) => v.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(v, _) => v.into_pyobject(py)?.into_any(),
        Value::UInt(v, _) => v.into_pyobject(py)?.into_any(),
        // Python only has 64-bit floats. The conversion from a 32-bit float is exact.
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
        // This is a null value. `Value` is non-exhaustive, so the values of a type that is added
        // later become None too.
        _ => py.None().into_bound(py),
    })
}

/// Converts a Python object that [`to_python`] returned back to a value.
///
/// Python objects do not store how many bits a number had. Integers become 64-bit integers, and
/// floats become `F64`.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    // In Python, `bool` is a subclass of `int`, so this test comes before the test for `int`.
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

/// A value that is converted to a Python object when a Python list or tuple is created from it.
pub(crate) struct Item<'a>(pub(crate) &'a Value);

impl<'py> IntoPyObject<'py> for Item<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        to_python(py, self.0)
    }
}

/// Converts a map from names to values to a Python dict.
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
