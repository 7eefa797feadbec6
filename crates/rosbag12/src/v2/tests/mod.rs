//! Tests of what is between the bytes of a bag and its messages, on bags laid with damage.

mod index;
mod inner;
mod learn;
mod made;
mod scan;
