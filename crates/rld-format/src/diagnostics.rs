//! The diagnostics of RLD files, in one table. Codes and names are stable.

rovelog_core::rules! {
    CUT "E-RLD-001" "cut" DataLost
        "the last row, or the block times of the last block, is truncated by the end of the file"
    TRAILING_BYTES "E-RLD-003" "trailing_bytes" DataLost
        "the last row is followed by bytes that are not a block"
    NO_LAYOUT "E-RLD-004" "no_layout" DataLost
        "the rows of the blocks cannot be located, because the header is damaged"
    ROWS_MISSING "E-RLD-005" "rows_missing" DataLost
        "the file has fewer rows than its header states and ends between two rows"
    BLOCK_LENGTH "E-RLD-006" "block_length" DataLost
        "a block is too short or too long, because bytes are missing or were added; its rows are left out, \
         and reading resumes at the next block times"

    COUNTS_DISAGREE "W-RLD-102" "counts_disagree" Repaired
        "the numbers of rows and blocks in the header contradict each other; the size of the file is used \
         instead"
    UNALIGNED_HEADER "W-RLD-103" "unaligned_header" Note
        "the length of the header is not a multiple of four, so blocks are not aligned"
    HEADER_LENGTH "W-RLD-104" "header_length" Repaired
        "the header length contradicts the lengths of comment and channel table; the sum of these lengths \
         is used"
    COMMENT_WITHOUT_NUL "W-RLD-105" "comment_without_nul" Note
        "the comment does not end with NUL, as this file version requires"
    COMMENT_NOT_ASCII "W-RLD-106" "comment_not_ascii" Note
        "the comment contains bytes that are not printable ASCII; they are replaced when shown and kept \
         when rewriting"
    UNKNOWN_UNIT "W-RLD-107" "unknown_unit" Note
        "a channel has an unknown unit code; the code is kept as a number"
    KIND_MISMATCH "W-RLD-108" "kind_mismatch" Note
        "the unit of a channel contradicts its position; the first channels are binary, regardless of \
         their unit"
    BAD_LINK "W-RLD-109" "bad_link" Note
        "a channel links to a range channel that is missing or not binary; its values are always taken as \
         valid"
    NAME_REPEATED "W-RLD-110" "name_repeated" Note
        "two channels have the same name; the second channel becomes name#2"
    NAME_CORRUPT "W-RLD-111" "name_corrupt" Note
        "a channel name contains bytes that are not printable ASCII; they are replaced when shown"
    SCALE_REFUSED "W-RLD-112" "scale_refused" Note
        "the scale exponent of a channel is beyond 30, so only its raw values are read"
    DIRTY_BITS "W-RLD-113" "dirty_bits" Note
        "bits that belong to no channel are set; they are ignored"
    EXTRA_WORD "W-RLD-114" "extra_word" Repaired
        "every row of a file without binary channels has an extra word of binary values, written by logger \
         versions 2.0 to 2.0.1; it is ignored"
    COMMENT_EXCESS "W-RLD-115" "comment_excess" Repaired
        "the comment length is four bytes too large, as written by logger versions 1.1 to 1.1.1; it is \
         corrected"
    TABLE_FROM_FIRST "W-RLD-116" "table_from_first" Repaired
        "a part has an invalid channel table, written by logger versions 2.0 to 2.0.1; the table of the \
         first part is used"
    NEGATIVE_NANOSECONDS "W-RLD-117" "negative_nanoseconds" Note
        "a block time has negative nanoseconds; it is converted to the same time with positive nanoseconds"
    STAMPS_IMPLAUSIBLE "W-RLD-118" "stamps_implausible" Repaired
        "block times are invalid; the rows get times that continue those of the previous block"
    GAP "W-RLD-119" "gap" Note
        "the logger lost blocks while the clock continued, which leaves a gap"
    CLOCK_BACKWARDS "W-RLD-120" "clock_backwards" Note
        "the monotonic clock goes back, because another run of the logger starts"
    CLOCK_STEP "W-RLD-121" "clock_step" Note
        "the UTC clock was set during the log"
    AVERAGED "W-RLD-122" "averaged" Note
        "the rate is below 1000, so rows can be means or single samples; the means of logger version 1.1 \
         are too small"
    TABLE_IMPLAUSIBLE "W-RLD-123" "table_implausible" Note
        "the channel table is not one that a known logger version or bug produces"
    NAME_ALIAS "W-RLD-124" "name_alias" Repaired
        "a channel name is misspelled, as written by some logger versions; it is corrected"
    RATE_ZERO "W-RLD-125" "rate_zero" Note
        "the rate is 0, so rows have no times"
    PART_LEFT_OUT "W-RLD-126" "part_left_out" Note
        "a file is named like a part of this log, but does not belong to it"
    HEADER_BEHIND "W-RLD-127" "header_behind" LeftOut
        "rows follow the blocks that the header counts; reading leaves them out, and `rovelog recover` \
         keeps them"
    CURRENT_WRAPS "W-RLD-128" "current_wraps" Note
        "a current jumps from one end of its range to the other, because values at 32 and 64 kSPS overflow \
         in logger versions up to 1.1.3"
    MEANS_WRAPPED "W-RLD-129" "means_wrapped" Note
        "means look like 32-bit overflows, because means of negative values overflow in logger versions up \
         to 2.0.0"
    VALIDITY_UNTRUSTED "W-RLD-130" "validity_untrusted" Note
        "the range bits are unreliable, because logger versions 1.1 to 1.1.2 mixed them with other bits if \
         digital inputs were off, so they stay 1"
    STOPPED_AT_2_GIB "W-RLD-131" "stopped_at_2_gib" Note
        "the file ends at 2 GiB and has fewer rows than its header states, as written by logger versions \
         up to 1.1.4; it is read up to its last row"
    BAD_MAGIC "W-RLD-132" "bad_magic" Repaired
        "the file does not start with the magic number of its version, although the rest of its header is \
         consistent"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
