//! A point cloud with any fields.

use std::collections::HashSet;

use rovelog::Scalar;
use rovelog::core::internal::layout::scalar_value;

/// A point cloud.
///
/// Points are stored one after the other. The values of a point are little-endian, and there is no
/// padding between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud {
    pub(super) fields: Vec<Field>,
    /// Number of points in a row.
    pub(super) width: usize,
    /// Number of rows. It is 1 if the points are not organized as an image.
    pub(super) height: usize,
    /// Values of all points.
    pub(super) data: Vec<u8>,
}

/// A field of each point in a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) ty: Scalar,
    /// Number of values that a point has in this field.
    pub(super) count: usize,
}

/// Position and type of a single value in each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) ty: Scalar,
    /// Offset of the value in a point.
    pub(super) offset: usize,
}

/// Names of fields that contain the intensity of a return, the preferred name first.
const INTENSITY: [&str; 3] = ["intensity", "reflectivity", "intensities"];

impl Field {
    /// Creates a field with a single value for each point.
    pub(super) fn new(name: &str, ty: Scalar) -> Self {
        Self { name: name.to_owned(), ty, count: 1 }
    }

    /// Returns the size in bytes of the field in a point.
    pub(super) fn size(&self) -> usize {
        self.count * self.ty.size()
    }
}

impl Column {
    /// Returns the bytes of this column's value in a point.
    pub(super) fn bytes<'a>(&self, point: &'a [u8]) -> &'a [u8] {
        &point[self.offset..self.offset + self.ty.size()]
    }

    /// Returns the value of this column in a point.
    pub(super) fn number(&self, point: &[u8]) -> f64 {
        scalar_value(self.ty, self.bytes(point)).as_f64().unwrap_or(f64::NAN)
    }
}

impl Cloud {
    /// Creates a cloud whose points are not organized as an image.
    pub(super) fn unorganized(fields: Vec<Field>, data: Vec<u8>) -> Self {
        let size: usize = fields.iter().map(Field::size).sum();
        let width = data.len() / size.max(1);
        Self { fields, width, height: 1, data }
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.width * self.height
    }

    /// Returns whether the cloud has no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns X, Y and Z in meters and the intensity of each point. Returns `None` if the points
    /// have no position. If they have no intensity, the intensity is 0.
    pub fn positions(&self) -> Option<impl ExactSizeIterator<Item = [f64; 4]> + '_> {
        let (columns, intensity) = (self.position()?, self.intensity());
        Some(self.points().map(move |point| {
            let [x, y, z] = columns.each_ref().map(|column| column.number(point));
            [x, y, z, intensity.as_ref().map_or(0.0, |column| column.number(point))]
        }))
    }

    /// Returns the bytes of each point.
    pub(super) fn points(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let size: usize = self.fields.iter().map(Field::size).sum();
        self.data.chunks_exact(size.max(1))
    }

    /// Returns a column for each value of a point. The values of a field with several values are
    /// numbered, as in `normal_0`, `normal_1`. All names differ.
    pub(super) fn columns(&self) -> Vec<Column> {
        let (mut columns, mut taken, mut offset) = (Vec::new(), HashSet::new(), 0);
        for field in &self.fields {
            for i in 0..field.count {
                let name = if field.count > 1 { format!("{}_{i}", field.name) } else { field.name.clone() };
                columns.push(Column { name: unique(&mut taken, &name), ty: field.ty, offset });
                offset += field.ty.size();
            }
        }
        columns
    }

    fn column(&self, name: &str) -> Option<Column> {
        self.columns().into_iter().find(|column| column.name == name)
    }

    /// Returns the columns of the coordinates.
    pub(super) fn position(&self) -> Option<[Column; 3]> {
        Some([self.column("x")?, self.column("y")?, self.column("z")?])
    }

    /// Returns the column of the intensity.
    pub(super) fn intensity(&self) -> Option<Column> {
        INTENSITY.iter().find_map(|name| self.column(name))
    }
}

/// Returns `name`, followed by a number if the name is already taken.
///
/// The first number is the number of the field, so that a cloud with thousands of equal names does
/// not need millions of attempts.
pub(super) fn unique(taken: &mut HashSet<String>, name: &str) -> String {
    let mut found = name.to_owned();
    for number in taken.len() + 1.. {
        if taken.insert(found.clone()) {
            break;
        }
        found = format!("{name}_{number}");
    }
    found
}
