//! Choice of the instructions of the processor at run time (feature `simd`).

/// Calls `function`. With the feature `simd`, the function is compiled once for each instruction
/// set, and the best one that the processor has is called. For example, AVX2 processes twice as many
/// values at a time as SSE2.
///
/// The functions that `function` calls must be `#[inline(always)]`. Otherwise, they are compiled only
/// for the instructions that all processors have.
#[inline(always)]
pub(super) fn dispatch<R>(function: impl FnOnce() -> R) -> R {
    #[cfg(feature = "simd")]
    return pulp::Arch::new().dispatch(function);
    #[cfg(not(feature = "simd"))]
    function()
}
