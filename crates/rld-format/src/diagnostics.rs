//! The diagnostics of RLD files, in one table. Codes and names are stable.

rovelog_core::rules! {
    CUT "E-RLD-001" "cut" DataLost
        "the file ends inside its last row or last block times; this incomplete part is lost"
    TRAILING_BYTES "E-RLD-003" "trailing_bytes" DataLost
        "the file ends with bytes that are not part of a block; they are not read, but all rows before them \
         are"
    NO_LAYOUT "E-RLD-004" "no_layout" DataLost
        "the header is damaged, so the rows in the file cannot be located and none of them is read"
    ROWS_MISSING "E-RLD-005" "rows_missing" DataLost
        "the file ends after a complete row, but its header states more rows; the rows in the file are read"
    BLOCK_LENGTH "E-RLD-006" "block_length" DataLost
        "a block is too short or too long, because bytes are missing or were added; its rows are lost, and \
         reading continues at the next block"

    COUNTS_DISAGREE "W-RLD-102" "counts_disagree" Repaired
        "the row count and the block count in the header contradict each other; rows are read up to the end \
         of the file"
    UNALIGNED_HEADER "W-RLD-103" "unaligned_header" Note
        "the header length is not a multiple of 4 bytes, so blocks are not aligned; all data is read"
    HEADER_LENGTH "W-RLD-104" "header_length" Repaired
        "the header length does not match the lengths of the comment and the channel table; the length that \
         gives a valid header is used"
    COMMENT_WITHOUT_NUL "W-RLD-105" "comment_without_nul" Note
        "the comment does not end with a NUL byte, which this file version requires; the comment is read \
         completely"
    COMMENT_NOT_ASCII "W-RLD-106" "comment_not_ascii" Note
        "the comment contains bytes that are not printable ASCII; they are replaced on output, but kept in \
         rewritten logs"
    UNKNOWN_UNIT "W-RLD-107" "unknown_unit" Note
        "a channel has an unknown unit code; its values are read, and the code is shown instead of a unit"
    KIND_MISMATCH "W-RLD-108" "kind_mismatch" Note
        "the unit of a channel does not match its position in the channel table; its position decides \
         whether the channel is binary"
    BAD_LINK "W-RLD-109" "bad_link" Note
        "a channel links to a range channel that is missing or not binary, so all its values count as valid"
    NAME_REPEATED "W-RLD-110" "name_repeated" Note
        "two channels have the same name; the second channel is renamed to NAME#2"
    NAME_CORRUPT "W-RLD-111" "name_corrupt" Note
        "a channel name contains bytes that are not printable ASCII; they are replaced in the name, and \
         values are not affected"
    SCALE_REFUSED "W-RLD-112" "scale_refused" Note
        "the scale of a channel is not between 10^-30 and 10^30, so its values are returned as unscaled \
         integers"
    DIRTY_BITS "W-RLD-113" "dirty_bits" Note
        "a row has bits set that belong to no channel; they are ignored"
    EXTRA_WORD "W-RLD-114" "extra_word" Repaired
        "each row of a file without binary channels starts with an extra 32-bit word, as written by logger \
         versions 2.0 to 2.0.1; this word is ignored"
    COMMENT_EXCESS "W-RLD-115" "comment_excess" Repaired
        "the comment length in the header is 4 bytes too large, as written by logger versions 1.1 to 1.1.1; \
         it is corrected"
    TABLE_FROM_FIRST "W-RLD-116" "table_from_first" Repaired
        "a part of a split log has an invalid channel table, as written by logger versions 2.0 to 2.0.1; the \
         table of the first part is used"
    NEGATIVE_NANOSECONDS "W-RLD-117" "negative_nanoseconds" Note
        "a block time has negative nanoseconds; it is converted to the same time with positive nanoseconds"
    STAMPS_IMPLAUSIBLE "W-RLD-118" "stamps_implausible" Repaired
        "the times of a block are invalid; its rows get times that continue from the previous block"
    GAP "W-RLD-119" "gap" Note
        "the clock advanced by more than one block, because the logger lost blocks; the times after the gap \
         are correct"
    CLOCK_BACKWARDS "W-RLD-120" "clock_backwards" Note
        "the monotonic clock goes back, because a new run of the logger starts here; all rows are kept"
    CLOCK_STEP "W-RLD-121" "clock_step" Note
        "the UTC clock of the logger was set during the log; all rows are kept"
    AVERAGED "W-RLD-122" "averaged" Note
        "the rate is below 1000 rows per second, so rows are means or single samples, but the file does not \
         state which; means of logger version 1.1 are too small"
    TABLE_IMPLAUSIBLE "W-RLD-123" "table_implausible" Note
        "the channel table has names, units, scales or links that no known logger version writes; it is used \
         unchanged, but may be damaged"
    NAME_ALIAS "W-RLD-124" "name_alias" Repaired
        "a channel name is misspelled, as some logger versions write it; the name is corrected, and values \
         are not affected"
    RATE_ZERO "W-RLD-125" "rate_zero" Note
        "the sample rate in the header is 0, so rows have no times; all values are read"
    PART_LEFT_OUT "W-RLD-126" "part_left_out" Note
        "a file is named like a part of this log, but does not belong to it; the file is not read"
    HEADER_BEHIND "W-RLD-127" "header_behind" LeftOut
        "the file has more blocks than its header states; their rows are not read, but `rovelog recover` \
         keeps them"
    CURRENT_WRAPS "W-RLD-128" "current_wraps" Note
        "a current jumps from one end of its range to the other, because logger versions up to 1.1.3 \
         overflow at 32 and 64 kSPS; the values until it jumps back are wrong"
    MEANS_WRAPPED "W-RLD-129" "means_wrapped" Note
        "a channel probably has means that are too large due to a 32-bit overflow, as in logger versions up \
         to 2.0.0; the values are returned unchanged"
    VALIDITY_UNTRUSTED "W-RLD-130" "validity_untrusted" Note
        "the range bits of currents are unreliable, because logger versions 1.1 to 1.1.2 mix them with other \
         bits if digital inputs are off; the bits are returned unchanged"
    STOPPED_AT_2_GIB "W-RLD-131" "stopped_at_2_gib" Note
        "the file ends at 2 GiB, because logger versions up to 1.1.4 cannot write larger files; all rows in \
         the file are read"
    BAD_MAGIC "W-RLD-132" "bad_magic" Repaired
        "the file starts with a wrong magic number, but the rest of its header is valid; the log is read \
         normally"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
