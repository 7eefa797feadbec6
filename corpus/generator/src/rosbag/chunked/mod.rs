//! Cases of bags of version 2.0, in which records are in chunks.

pub(super) mod damage;
pub(super) mod index;
mod log;
pub(super) mod records;
pub(super) mod storage;

pub(super) use log::bz2;

/// Names that the cases use.
mod prelude {
    pub(super) use super::log::{
        BAG_HEADER_SIZE, Bag, Chunk, Conn, Content, Index, Info, VERSION_LINE, by, bz2, header, index_data,
        index_data_with, linked, lz4, talk, talker, with_second,
    };
    pub(super) use crate::rosbag::compressed::{cut, gzip};
    pub(super) use crate::rosbag::prelude::*;
}
