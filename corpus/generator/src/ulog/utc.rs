//! Cases about the conversion of log times to UTC.

use super::prelude::*;

cases! {
    "utc-clock-is-unix" [U1] "a simulation's clock is Unix time already" => {
        let start = 1_710_773_350_346_000;
        Log::new_at(start).utc("clock_is_unix", 0).topic(PLAIN)
            .rows_with(0, 0..5_u16, |i| values![start + 10_000 * u64::from(i), f32::from(i)])
    };
    "utc-boot-time" [U2] "the info boot_time_utc_us is the offset, and goes before GPS" =>
        Log::new().info("uint64_t boot_time_utc_us", BOOT).utc("boot_time_utc_us", BOOT).topic(INT32)
            // The time of the receiver differs by 0.684 s, which readers report, but do not use.
            .rows_with(0, (0..5).map(fix_time), |us| int32_row(us, BOOT + us + 684_000, 3));
    "utc-gps-int32" [U3] "the lower median over fixes; older position fields in 1e-7 degrees" => {
        // Each entry has the fix, true if the receiver has a time, and the deviation from the
        // median offset.
        let fixes = [
            (0, false, 0), (2, true, 5_000), (3, true, -3_000), (3, true, 1_000), (4, true, 0), (3, true, 90_000),
            (6, true, -1_000), (5, true, 2_000), (1, true, 0), (3, false, 0),
        ];
        Log::new().topic(INT32)
            .each((0..).map(fix_time).zip(fixes), |log, (us, (fix, timed, off))| {
                let utc = (BOOT + us).saturating_add_signed(off);
                log.row(0, int32_row(us, if timed { utc } else { 0 }, fix))
            })
            // Six entries are valid: -3000, -1000, 0, 1000, 2000 and 90000. Their lower median is
            // 0.
            .utc("gps", BOOT)
    };
    "utc-gps-double" [U3] "newer position fields in degrees, from the first instance that has a fix" => {
        let row = |us: u64, utc: u64| values![us, utc, 47.397_742, 8.545_593_8, 488.004, 0.5, 3];
        Log::new().format(INT32)
            .format("sensor_gps:uint64_t timestamp;uint64_t time_utc_usec;double latitude_deg;double longitude_deg;\
                     double altitude_msl_m;float eph;uint8_t fix_type;")
            .subscribe("vehicle_gps_position", 0, 0)
            .each(0..3, |log, i| log.subscribe("sensor_gps", i, u16::from(i) + 1))
            .each((0..3).map(fix_time), |log, us| {
                log.row(0, int32_row(us, BOOT + us, 2))
                    // This row has a fix, but the time of a receiver that has no date yet.
                    .row(1, row(us, 315_964_800_000_000 + us))
                    .row(3, row(us + 1, BOOT + us + 7_000_000)).row(2, row(us + 2, BOOT + us + 2))
            })
            .utc("gps", BOOT)
    };
    "utc-gps-rollover" [U5] "dates of 2004, 1024 weeks too early: no UTC" =>
        Log::new().topic(INT32).note("gps_date")
            .rows_with(0, (0..5).map(fix_time), |us| int32_row(us, BOOT - 1024 * 7 * 86_400_000_000 + us, 3));
    "utc-gps-jumps" [U6] "a receiver that learns of leap seconds during the log" =>
        Log::new().topic(INT32)
            .rows_with(0, (0..4).map(fix_time), |us| int32_row(us, BOOT + us + 2_000_000, 3))
            .note("utc_jumps").rows_with(0, (4..10).map(fix_time), |us| int32_row(us, BOOT + us, 3))
            // The offset is the lower median, because four of ten are two seconds late.
            .utc("gps", BOOT);
    "utc-none+time-ref-utc" [U4] "a time zone and a receiver without fix place nothing" =>
        Log::new().info("int32_t time_ref_utc", 3600).info("uint64_t boot_time_utc_us", 0).format(PLAIN).topic(INT32)
            .subscribe("t", 0, 1).row(0, int32_row(START, 0, 3)).row(0, int32_row(START + 1, BOOT, 2))
            .rows_of(1, 1..3);
}

/// Unix time of the boot in microseconds, which is 2023-11-14T22:13:20Z.
const BOOT: u64 = 1_700_000_000_000_000;

const INT32: &str = "vehicle_gps_position:uint64_t timestamp;uint64_t time_utc_usec;int32_t lat;int32_t lon;\
                     int32_t alt;float eph;uint8_t fix_type;";

/// Returns the time of position `i` in microseconds. Positions are 200 ms apart.
fn fix_time(i: u64) -> u64 {
    START + 200_000 * i
}

fn int32_row(us: u64, utc: u64, fix: u8) -> Vec<Value> {
    values![us, utc, 473_977_420, 85_455_938, 488_004, 0.5, fix]
}
