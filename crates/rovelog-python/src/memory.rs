//! Memory that numpy uses without copying it, through `__array_interface__`.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// A block of memory with a shape. A numpy array keeps the object alive as long as it uses the
/// memory.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Memory {
    /// Only held: writable memory belongs to numpy alone.
    _owner: Box<dyn Send + Sync>,
    address: usize,
    shape: Vec<usize>,
    kind: &'static str,
    writable: bool,
}

impl Memory {
    /// Returns read-only memory of Arrow.
    fn shared(buffer: Buffer, shape: Vec<usize>, kind: &'static str) -> Self {
        let address = buffer.as_ptr().expose_provenance();
        Self { _owner: Box::new(buffer), address, shape, kind, writable: false }
    }

    /// Returns the first `len` bytes of `owner`, which numpy may write, because nothing else uses
    /// them.
    pub(crate) fn owned<T: AsMut<[u8]> + Send + Sync + 'static>(owner: T, len: usize) -> Self {
        let mut owner = Box::new(owner);
        let bytes = &mut (*owner).as_mut()[..len];
        let address = bytes.as_mut_ptr().expose_provenance();
        Self { _owner: owner, address, shape: vec![len], kind: "|u1", writable: true }
    }

    /// Returns booleans, one byte each.
    fn truths(values: impl Iterator<Item = bool>, shape: Vec<usize>) -> Self {
        let bytes: Vec<u8> = values.map(u8::from).collect();
        let len = bytes.len();
        Self { shape, kind: "|b1", writable: false, ..Self::owned(bytes, len) }
    }
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item(intern!(py, "version"), 3)?;
        interface.set_item(intern!(py, "shape"), pyo3::types::PyTuple::new(py, &self.shape)?)?;
        interface.set_item(intern!(py, "typestr"), self.kind)?;
        interface.set_item(intern!(py, "data"), (self.address, !self.writable))?;
        Ok(interface)
    }
}

/// A column, or a part of one that numpy can hold.
#[derive(Default)]
#[pyclass(frozen, get_all, module = "rovelog._core")]
pub(crate) struct Leaf {
    /// Flat name: `esc.rpm`.
    name: String,
    /// Flat name with `[]` in place of each index: `esc[].rpm`.
    pattern: String,
    /// Numbers, booleans or times; `None` for texts and for lists of variable length.
    data: Option<Py<Memory>>,
    /// Validity of the values; `None` if all are valid.
    valid: Option<Py<Memory>>,
    /// Texts or bytes.
    objects: Option<Vec<Py<PyAny>>>,
    /// Start of each list in `inner`, and the end of the last one.
    offsets: Option<Py<Memory>>,
    /// Elements of the lists.
    inner: Vec<Py<Leaf>>,
    /// Shape of texts, bytes and lists: records, then the lengths of arrays of fixed length.
    shape: Vec<usize>,
}

/// Returns the leaves of a column.
pub(crate) fn leaves(py: Python<'_>, name: &str, array: &ArrayRef) -> PyResult<Vec<Py<Leaf>>> {
    let mut found = Vec::new();
    collect(py, &[name, name], array, vec![array.len()], &mut found)?;
    Ok(found)
}

fn collect(
    py: Python<'_>,
    [name, pattern]: &[&str; 2],
    array: &ArrayRef,
    mut shape: Vec<usize>,
    found: &mut Vec<Py<Leaf>>,
) -> PyResult<()> {
    let bare = Leaf { name: (*name).to_owned(), pattern: (*pattern).to_owned(), ..Leaf::default() };
    let leaf = match array.data_type() {
        DataType::Struct(fields) => {
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                let names = [name, pattern].map(|outer| format!("{outer}.{}", field.name()));
                collect(py, &names.each_ref().map(String::as_str), column, shape.clone(), found)?;
            }
            return Ok(());
        }
        DataType::FixedSizeList(_, size) => {
            shape.push(usize::try_from(*size).unwrap_or(0));
            let pattern = format!("{pattern}[]");
            return collect(py, &[name, &pattern], array.as_fixed_size_list().values(), shape, found);
        }
        DataType::List(_) => lists::<i32>(py, Leaf { shape, ..bare }, array)?,
        DataType::LargeList(_) => lists::<i64>(py, Leaf { shape, ..bare }, array)?,
        DataType::Boolean => {
            let valid = valid(py, array.nulls(), &shape)?;
            let truths = Memory::truths(array.as_boolean().values().iter(), shape);
            Leaf { data: Some(Py::new(py, truths)?), valid, ..bare }
        }
        other => match number(other) {
            Some(kind) => {
                let (data, width) = (array.to_data(), other.primitive_width().unwrap_or(1));
                let buffer = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
                let valid = valid(py, array.nulls(), &shape)?;
                let numbers = Memory::shared(buffer, shape, kind);
                Leaf { data: Some(Py::new(py, numbers)?), valid, ..bare }
            }
            None => Leaf { objects: Some(objects(py, array)?), shape, ..bare },
        },
    };
    found.push(Py::new(py, leaf)?);
    Ok(())
}

fn lists<O: OffsetSizeTrait>(py: Python<'_>, bare: Leaf, array: &ArrayRef) -> PyResult<Leaf> {
    let lists = array.as_list::<O>();
    let kind = if O::IS_LARGE { "<i8" } else { "<i4" };
    let offsets = lists.offsets();
    let memory = Memory::shared(offsets.inner().inner().clone(), vec![offsets.len()], kind);
    let inner = leaves(py, &bare.name, lists.values())?;
    let valid = valid(py, array.nulls(), &[array.len()])?;
    Ok(Leaf { inner, offsets: Some(Py::new(py, memory)?), valid, ..bare })
}

/// Returns texts and bytes as Python objects; all other types have a numpy type.
fn objects(py: Python<'_>, array: &ArrayRef) -> PyResult<Vec<Py<PyAny>>> {
    let text = |value: Option<&str>| value.map_or_else(|| py.None(), |v| PyString::new(py, v).into());
    let bytes = |value: Option<&[u8]>| value.map_or_else(|| py.None(), |v| PyBytes::new(py, v).into());
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(text).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(text).collect(),
        DataType::Binary => array.as_binary::<i32>().iter().map(bytes).collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().map(bytes).collect(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().map(bytes).collect(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let plain = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
            objects(py, &plain.map_err(|error| PyNotImplementedError::new_err(error.to_string()))?)?
        }
        other => {
            let why = format!("numpy has no form for Arrow's {other}: use to_arrow()");
            return Err(PyNotImplementedError::new_err(why));
        }
    })
}

fn valid(py: Python<'_>, nulls: Option<&NullBuffer>, shape: &[usize]) -> PyResult<Option<Py<Memory>>> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(None) };
    Ok(Some(Py::new(py, Memory::truths(nulls.iter(), shape.to_vec()))?))
}

/// Returns numpy's name for a type of numbers or times.
fn number(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Int8 => "|i1",
        DataType::UInt8 => "|u1",
        DataType::Int16 => "<i2",
        DataType::UInt16 => "<u2",
        DataType::Int32 => "<i4",
        DataType::UInt32 => "<u4",
        DataType::Int64 => "<i8",
        DataType::UInt64 => "<u8",
        DataType::Float32 => "<f4",
        DataType::Float64 => "<f8",
        DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, _) => "<M8[ns]",
        DataType::Duration(arrow_schema::TimeUnit::Nanosecond) => "<m8[ns]",
        _ => return None,
    })
}
