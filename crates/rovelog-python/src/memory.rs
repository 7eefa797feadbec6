//! Arrow columns as memory that numpy can use.
//!
//! Numpy reads the attribute `__array_interface__` of an object. This is a dict with the address,
//! the shape and the element type of some memory, which numpy then uses without copying it. A
//! nested column is divided into leaves. Each leaf is a part of the column that a single numpy
//! array can represent. For example, the column `esc` is an array of 8 structs with the field
//! `rpm`. It becomes one leaf with the name `esc.rpm`, the pattern `esc[].rpm` and the shape (rows,
//! 8).

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// A block of memory with a shape. The numpy arrays that use the memory keep this object alive.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Memory {
    /// Owner of the memory. Rust code never accesses it, because numpy may write to the memory at
    /// any time.
    _owner: Box<dyn Send + Sync>,
    address: usize,
    shape: Vec<usize>,
    /// Element type in the notation of numpy, such as `<f4`.
    kind: &'static str,
    /// True if numpy may write to the memory.
    writable: bool,
}

impl Memory {
    /// Returns read-only memory that shares the bytes of an Arrow buffer.
    fn shared(buffer: Buffer, shape: Vec<usize>, kind: &'static str) -> Self {
        let address = buffer.as_ptr().expose_provenance();
        Self { _owner: Box::new(buffer), address, shape, kind, writable: false }
    }

    /// Returns the first `len` bytes of `owner` as writable memory. This is sound because nothing
    /// else uses `owner`.
    pub(crate) fn owned<T: AsMut<[u8]> + Send + Sync + 'static>(owner: T, len: usize) -> Self {
        // The owner is boxed before the address is taken. If the bytes are stored inside of the
        // owner, moving it later would change their address.
        let mut owner = Box::new(owner);
        let bytes = &mut (*owner).as_mut()[..len];
        let address = bytes.as_mut_ptr().expose_provenance();
        Self { _owner: owner, address, shape: vec![len], kind: "|u1", writable: true }
    }

    /// Returns booleans as memory with one byte for each value. Arrow stores them as bits, which
    /// numpy cannot use.
    fn booleans(values: impl Iterator<Item = bool>, shape: Vec<usize>) -> Self {
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

/// A column, or the part of a nested column that a single numpy array can represent.
#[derive(Default)]
#[pyclass(frozen, get_all, module = "rovelog._core")]
pub(crate) struct Leaf {
    /// Name of the column or of the nested field, such as `esc.rpm`.
    name: String,
    /// Name with `[]` after each array, such as `esc[].rpm`.
    pattern: String,
    /// Numbers, booleans or times. `None` if the values are strings, bytes or lists.
    data: Option<Py<Memory>>,
    /// Booleans that are true for valid values. `None` if all values are valid.
    valid: Option<Py<Memory>>,
    /// Strings or bytes as Python objects. `None` for any other type.
    objects: Option<Vec<Py<PyAny>>>,
    /// If the values are lists with different lengths, the start index of each list in `inner`,
    /// followed by the end of the last list.
    offsets: Option<Py<Memory>>,
    /// Elements of all lists, one list after the other.
    inner: Vec<Py<Leaf>>,
    /// Shape of an array of strings, bytes or lists: the number of records, followed by the lengths
    /// of fixed-size arrays.
    shape: Vec<usize>,
}

/// Divides a column into leaves, which are parts that a single numpy array can represent.
pub(crate) fn leaves(py: Python<'_>, name: &str, array: &ArrayRef) -> PyResult<Vec<Py<Leaf>>> {
    let mut found = Vec::new();
    collect_leaves(py, &[name, name], array, vec![array.len()], &mut found)?;
    Ok(found)
}

/// Divides the array `array` into parts that a single numpy array can represent, and adds them to
/// `found`. `shape` contains the lengths of the arrays that contain `array`.
fn collect_leaves(
    py: Python<'_>,
    [name, pattern]: &[&str; 2],
    array: &ArrayRef,
    mut shape: Vec<usize>,
    found: &mut Vec<Py<Leaf>>,
) -> PyResult<()> {
    let unfilled = Leaf { name: (*name).to_owned(), pattern: (*pattern).to_owned(), ..Leaf::default() };
    let leaf = match array.data_type() {
        DataType::Struct(fields) => {
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                let names = [name, pattern].map(|outer| format!("{outer}.{}", field.name()));
                collect_leaves(py, &names.each_ref().map(String::as_str), column, shape.clone(), found)?;
            }
            return Ok(());
        }
        DataType::FixedSizeList(_, size) => {
            shape.push(usize::try_from(*size).unwrap_or(0));
            let pattern = format!("{pattern}[]");
            return collect_leaves(py, &[name, &pattern], array.as_fixed_size_list().values(), shape, found);
        }
        DataType::List(_) => list_leaf::<i32>(py, Leaf { shape, ..unfilled }, array)?,
        DataType::LargeList(_) => list_leaf::<i64>(py, Leaf { shape, ..unfilled }, array)?,
        DataType::Boolean => {
            let valid = validity(py, array.nulls(), &shape)?;
            let booleans = Memory::booleans(array.as_boolean().values().iter(), shape);
            Leaf { data: Some(Py::new(py, booleans)?), valid, ..unfilled }
        }
        other => match numpy_type(other) {
            Some(kind) => {
                let (data, width) = (array.to_data(), other.primitive_width().unwrap_or(1));
                // A sliced Arrow array shares the buffer of the whole array and starts at an offset
                // in it.
                let buffer = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
                let valid = validity(py, array.nulls(), &shape)?;
                let numbers = Memory::shared(buffer, shape, kind);
                Leaf { data: Some(Py::new(py, numbers)?), valid, ..unfilled }
            }
            None => Leaf { objects: Some(objects(py, array)?), shape, ..unfilled },
        },
    };
    found.push(Py::new(py, leaf)?);
    Ok(())
}

/// Returns a column that contains lists with different lengths as a [`Leaf`]. The elements of all
/// lists form one array.
fn list_leaf<O: OffsetSizeTrait>(py: Python<'_>, unfilled: Leaf, array: &ArrayRef) -> PyResult<Leaf> {
    let lists = array.as_list::<O>();
    let kind = if O::IS_LARGE { "<i8" } else { "<i4" };
    let offsets = lists.offsets();
    let memory = Memory::shared(offsets.inner().inner().clone(), vec![offsets.len()], kind);
    let inner = leaves(py, &unfilled.name, lists.values())?;
    let valid = validity(py, array.nulls(), &[array.len()])?;
    Ok(Leaf { inner, offsets: Some(Py::new(py, memory)?), valid, ..unfilled })
}

/// Returns strings or bytes as Python objects. This function is only called for types without a
/// numpy type.
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
            // Numpy has no dictionary encoding, so each dictionary key is replaced by its value.
            let dictionary = array.as_any_dictionary();
            let plain = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
            objects(py, &plain.map_err(|error| PyNotImplementedError::new_err(error.to_string()))?)?
        }
        other => {
            let why = format!("numpy cannot represent the Arrow type {other}, so use to_arrow()");
            return Err(PyNotImplementedError::new_err(why));
        }
    })
}

/// Returns booleans that are true for valid values. Returns `None` if all values are valid.
fn validity(py: Python<'_>, nulls: Option<&NullBuffer>, shape: &[usize]) -> PyResult<Option<Py<Memory>>> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(None) };
    Ok(Some(Py::new(py, Memory::booleans(nulls.iter(), shape.to_vec()))?))
}

/// Returns the numpy type for an Arrow type of numbers or times. Returns `None` if numpy has no
/// such type.
fn numpy_type(data_type: &DataType) -> Option<&'static str> {
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
