//! The diagnostics of RLD files, in one table. Codes and names are stable.

rovelog_core::rules! {
    CUT "E-RLD-001" "cut" DataLost
        "a row, or the block times of a block, truncated at the end of the file"
    TRAILING_BYTES "E-RLD-003" "trailing_bytes" DataLost
        "bytes after the last row that are not a block"
    NO_LAYOUT "E-RLD-004" "no_layout" DataLost
        "blocks whose rows cannot be located because of the header"
    ROWS_MISSING "E-RLD-005" "rows_missing" DataLost
        "fewer rows in the file than its header states: the file ends between two rows"
    BLOCK_LENGTH "E-RLD-006" "block_length" DataLost
        "a block that is too short or too long, because bytes are missing or were added: its rows are left out, and reading resumes at the next block times"

    COUNTS_DISAGREE "W-RLD-102" "counts_disagree" Repaired
        "numbers of rows and blocks in the header that contradict each other: the size of the file is used instead"
    UNALIGNED_HEADER "W-RLD-103" "unaligned_header" Note
        "a header whose length is not a multiple of four: blocks are not aligned"
    HEADER_LENGTH "W-RLD-104" "header_length" Repaired
        "a header length that contradicts comment and channels: their sum is used"
    COMMENT_WITHOUT_NUL "W-RLD-105" "comment_without_nul" Note
        "a comment without the NUL that this version requires at its end"
    COMMENT_NOT_ASCII "W-RLD-106" "comment_not_ascii" Note
        "a comment with bytes that are not printable ASCII: replaced when shown, kept when rewriting"
    UNKNOWN_UNIT "W-RLD-107" "unknown_unit" Note
        "an unknown unit code: kept as a number"
    KIND_MISMATCH "W-RLD-108" "kind_mismatch" Note
        "a unit that contradicts the position of the channel: the first channels are binary, regardless of their unit"
    BAD_LINK "W-RLD-109" "bad_link" Note
        "a link to a channel that is missing or not binary: the channel is always taken as valid"
    NAME_REPEATED "W-RLD-110" "name_repeated" Note
        "a repeated channel name: the second channel becomes name#2"
    NAME_CORRUPT "W-RLD-111" "name_corrupt" Note
        "a channel name with bytes that are not printable ASCII: replaced when shown"
    SCALE_REFUSED "W-RLD-112" "scale_refused" Note
        "a scale exponent beyond 30: the channel has raw values only"
    DIRTY_BITS "W-RLD-113" "dirty_bits" Note
        "set bits that belong to no channel: ignored"
    EXTRA_WORD "W-RLD-114" "extra_word" Repaired
        "an extra word of binary values in every row of a file without binary channels (written by logger versions 2.0 to 2.0.1): ignored"
    COMMENT_EXCESS "W-RLD-115" "comment_excess" Repaired
        "a comment length that is four bytes too large (written by logger versions 1.1 to 1.1.1): corrected"
    TABLE_FROM_FIRST "W-RLD-116" "table_from_first" Repaired
        "a part with an invalid channel table (written by logger versions 2.0 to 2.0.1): the table of the first part is used"
    NEGATIVE_NANOSECONDS "W-RLD-117" "negative_nanoseconds" Note
        "a block time with negative nanoseconds: normalized"
    STAMPS_IMPLAUSIBLE "W-RLD-118" "stamps_implausible" Repaired
        "invalid block times: the rows follow the previous block or the start time"
    GAP "W-RLD-119" "gap" Note
        "a gap: the logger lost blocks while the clock continued"
    CLOCK_BACKWARDS "W-RLD-120" "clock_backwards" Note
        "a monotonic clock that went back: another run of the logger starts"
    CLOCK_STEP "W-RLD-121" "clock_step" Note
        "a UTC clock that was set during the log"
    AVERAGED "W-RLD-122" "averaged" Note
        "a rate below 1000: rows can be means or single samples, and the means of logger version 1.1 are too small"
    TABLE_IMPLAUSIBLE "W-RLD-123" "table_implausible" Note
        "a channel table that no known logger version or bug produces"
    NAME_ALIAS "W-RLD-124" "name_alias" Repaired
        "a channel name that a logger version misspelled"
    RATE_ZERO "W-RLD-125" "rate_zero" Note
        "a rate of 0: rows have no times"
    PART_LEFT_OUT "W-RLD-126" "part_left_out" Note
        "a file that is named like a part of this log, but does not belong to it"
    HEADER_BEHIND "W-RLD-127" "header_behind" LeftOut
        "rows after the blocks that the header counts: left out when reading, kept by recovery"
    CURRENT_WRAPS "W-RLD-128" "current_wraps" Note
        "a current that jumps from one end of its range to the other: values at 32 and 64 kSPS wrap around in logger versions up to 1.1.3"
    MEANS_WRAPPED "W-RLD-129" "means_wrapped" Note
        "means that look like 32-bit overflows: means of negative values overflow in logger versions up to 2.0.0"
    VALIDITY_UNTRUSTED "W-RLD-130" "validity_untrusted" Note
        "unreliable range bits: logger versions 1.1 to 1.1.2 mixed them with other bits if digital inputs were off, so they stay 1"
    STOPPED_AT_2_GIB "W-RLD-131" "stopped_at_2_gib" Note
        "a file that ends at 2 GiB, before the number of rows in its header (logger versions up to 1.1.4): read up to its last row"
    BAD_MAGIC "W-RLD-132" "bad_magic" Repaired
        "a file that does not start with the magic of its version, although the rest of its header is consistent"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
