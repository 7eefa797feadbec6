//! Everything that can be noticed in an RLD file, in one table. Codes and names are stable.

rovelog_core::rules! {
    CUT "E-RLD-001" "cut" DataLost
        "a row or a block's stamps that the end of the file cuts"
    TRAILING_BYTES "E-RLD-003" "trailing_bytes" DataLost
        "bytes behind the last row that are no block"
    NO_LAYOUT "E-RLD-004" "no_layout" DataLost
        "blocks whose rows the header does not allow to find"
    ROWS_MISSING "E-RLD-005" "rows_missing" DataLost
        "fewer rows in the file than its header counts: it ends between two rows"

    COUNTS_DISAGREE "W-RLD-102" "counts_disagree" Repaired
        "counts of rows and blocks that contradict each other: the size of the file decides"
    UNALIGNED_HEADER "W-RLD-103" "unaligned_header" Note
        "a header whose length is no multiple of four: blocks are not aligned"
    HEADER_LENGTH "W-RLD-104" "header_length" Repaired
        "a header length that contradicts comment and channels: the sum of the parts counts"
    COMMENT_WITHOUT_NUL "W-RLD-105" "comment_without_nul" Note
        "a comment without the NUL that its version ends it with"
    COMMENT_NOT_ASCII "W-RLD-106" "comment_not_ascii" Note
        "a comment with bytes that are no printable ASCII: replaced in views, kept for rewriting"
    UNKNOWN_UNIT "W-RLD-107" "unknown_unit" Note
        "a unit code of no known version: kept as a number"
    KIND_MISMATCH "W-RLD-108" "kind_mismatch" Note
        "a unit that contradicts the channel's place: the first ones are binary, whatever their unit"
    BAD_LINK "W-RLD-109" "bad_link" Note
        "a link to a channel that is not there or not binary: the channel counts as always valid"
    NAME_REPEATED "W-RLD-110" "name_repeated" Note
        "a channel's name again: the second is called name#2"
    NAME_CORRUPT "W-RLD-111" "name_corrupt" Note
        "a channel's name with bytes that are no printable ASCII: replaced in views"
    SCALE_REFUSED "W-RLD-112" "scale_refused" Note
        "an exponent of ten beyond 30: raw values only"
    DIRTY_BITS "W-RLD-113" "dirty_bits" Note
        "bits set that belong to no channel: masked"
    EXTRA_WORD "W-RLD-114" "extra_word" Repaired
        "a word of binary values in every row of a file without binary channels (2.0 to 2.0.1): left out"
    COMMENT_EXCESS "W-RLD-115" "comment_excess" Repaired
        "a comment whose length is stated four bytes too large (1.1 to 1.1.1): corrected"
    TABLE_FROM_FIRST "W-RLD-116" "table_from_first" Repaired
        "a part with an unusable channel table (2.0 to 2.0.1): the first part's is used"
    NEGATIVE_NANOSECONDS "W-RLD-117" "negative_nanoseconds" Note
        "a stamp with nanoseconds below zero: normalised"
    STAMPS_IMPLAUSIBLE "W-RLD-118" "stamps_implausible" Repaired
        "a block's stamps that are no times: its rows follow the block before, or the start time"
    GAP "W-RLD-119" "gap" Note
        "blocks that the logger lost: the clock went on, the rows did not"
    CLOCK_BACKWARDS "W-RLD-120" "clock_backwards" Note
        "a monotonic clock that went back: another run of the logger begins"
    CLOCK_STEP "W-RLD-121" "clock_step" Note
        "a clock of UTC that was set while the log ran"
    AVERAGED "W-RLD-122" "averaged" Note
        "a rate below 1000: the file does not say whether rows are means, and means of 1.1 are too small"
    TABLE_IMPLAUSIBLE "W-RLD-123" "table_implausible" Note
        "a channel table that no writer makes, and no known bug explains"
    NAME_ALIAS "W-RLD-124" "name_alias" Repaired
        "a channel's name that a release misspelt"
    RATE_ZERO "W-RLD-125" "rate_zero" Note
        "a rate of 0: rows have no times"
    PART_LEFT_OUT "W-RLD-126" "part_left_out" Note
        "a file that is named like a part of this log and is none"
    HEADER_BEHIND "W-RLD-127" "header_behind" LeftOut
        "rows in blocks behind those that the header counts: left out by reading, kept by recovery"
    CURRENT_WRAPS "W-RLD-128" "current_wraps" Note
        "a current that jumps from one end of its range to the other: 32 and 64 kSPS wrap around in 1.1.3 and before"
    MEANS_WRAPPED "W-RLD-129" "means_wrapped" Note
        "means that look like sums which passed 32 bits: those of negative values do in 2.0.0 and before"
    VALIDITY_UNTRUSTED "W-RLD-130" "validity_untrusted" Note
        "range bits that 1.1 to 1.1.2 mixed with others where digital inputs were off: they stick at 1"
    STOPPED_AT_2_GIB "W-RLD-131" "stopped_at_2_gib" Note
        "a file that ends at 2 GiB before its header's counts (1.1.4 and before): read up to its last row"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_documented_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL, "docs/formats/rld.md");
    }
}
