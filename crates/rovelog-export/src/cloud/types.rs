//! Names of number types in the point cloud formats.

use rovelog::Scalar;

/// Names of a number type in the point cloud formats.
pub(super) struct TypeNames {
    pub(super) numpy: &'static str,
    pub(super) ply: &'static str,
    /// Kind of number in PCD: `I` and `U` are signed and unsigned integers, and `F` is a float.
    pub(super) pcd: char,
    /// Number of the type in LAS. See section "Extra Bytes" of the LAS 1.4 specification.
    #[cfg_attr(not(feature = "las"), expect(dead_code, reason = "only LAS uses it"))]
    pub(super) las: u8,
}

/// Returns the names of a type. Sensors do not store 64-bit integers in point clouds, and PLY has
/// no standard name for them.
pub(super) fn names(ty: Scalar) -> TypeNames {
    let (numpy, ply, pcd, las) = match ty {
        Scalar::Bool | Scalar::UInt8 => ("|u1", "uchar", 'U', 1),
        Scalar::Int8 => ("|i1", "char", 'I', 2),
        Scalar::UInt16 => ("<u2", "ushort", 'U', 3),
        Scalar::Int16 => ("<i2", "short", 'I', 4),
        Scalar::UInt32 => ("<u4", "uint", 'U', 5),
        Scalar::Int32 => ("<i4", "int", 'I', 6),
        Scalar::UInt64 => ("<u8", "uint64", 'U', 7),
        Scalar::Int64 => ("<i8", "int64", 'I', 8),
        Scalar::Float32 => ("<f4", "float", 'F', 9),
        Scalar::Float64 => ("<f8", "double", 'F', 10),
    };
    TypeNames { numpy, ply, pcd, las }
}
