//! Ten seconds of a made-up flight: about forty topics of the shapes and rates PX4 logs.

use crate::corpus::ulog::lay::{Lay, flag_bits, header, keyed, message, subscription};

/// Name, fields after the timestamp, instances, microseconds between rows.
const TOPICS: &[(&str, &str, u8, u64)] = &[
    (
        "sensor_combined",
        "float[3] gyro_rad;uint32_t gyro_integral_dt;int32_t accelerometer_timestamp_relative;float[3] accelerometer_m_s2;uint32_t accelerometer_integral_dt;uint8_t accelerometer_clipping;uint8_t gyro_clipping;uint8_t[2] _padding0;",
        1,
        4_000,
    ),
    (
        "vehicle_attitude",
        "uint64_t timestamp_sample;float[4] q;float[4] delta_q_reset;uint8_t quat_reset_counter;uint8_t[7] _padding0;",
        1,
        10_000,
    ),
    ("vehicle_angular_velocity", "uint64_t timestamp_sample;float[3] xyz;float[3] xyz_derivative;", 1, 5_000),
    (
        "vehicle_local_position",
        "uint64_t timestamp_sample;uint64_t ref_timestamp;double ref_lat;double ref_lon;float x;float y;float z;float vx;float vy;float vz;float ax;float ay;float az;float heading;float eph;float epv;bool xy_valid;bool z_valid;bool v_xy_valid;bool v_z_valid;uint8_t xy_reset_counter;uint8_t[3] _padding0;",
        1,
        20_000,
    ),
    (
        "vehicle_global_position",
        "uint64_t timestamp_sample;double lat;double lon;float alt;float alt_ellipsoid;float eph;float epv;uint8_t lat_lon_reset_counter;bool dead_reckoning;uint8_t[6] _padding0;",
        1,
        50_000,
    ),
    ("actuator_outputs", "uint32_t noutputs;float[16] output;uint8_t[4] _padding0;", 2, 20_000),
    (
        "actuator_motors",
        "uint64_t timestamp_sample;float[12] control;uint16_t reversible_flags;uint8_t[6] _padding0;",
        1,
        10_000,
    ),
    (
        "vehicle_rates_setpoint",
        "float roll;float pitch;float yaw;float[3] thrust_body;bool reset_integral;uint8_t[7] _padding0;",
        1,
        10_000,
    ),
    (
        "vehicle_attitude_setpoint",
        "float yaw_sp_move_rate;float[4] q_d;float[3] thrust_body;bool reset_integral;uint8_t[7] _padding0;",
        1,
        20_000,
    ),
    (
        "estimator_states",
        "uint64_t timestamp_sample;float[25] states;uint8_t n_states;uint8_t[3] _padding0;float[25] covariances;",
        3,
        100_000,
    ),
    (
        "estimator_status",
        "uint64_t timestamp_sample;float[3] output_tracking_error;uint16_t gps_check_fail_flags;uint16_t filter_fault_flags;float pos_horiz_accuracy;float pos_vert_accuracy;float hdg_test_ratio;uint32_t control_mode_flags;uint8_t health_flags;uint8_t[3] _padding0;",
        3,
        200_000,
    ),
    (
        "estimator_innovations",
        "uint64_t timestamp_sample;float[2] gps_hvel;float gps_vvel;float[2] gps_hpos;float gps_vpos;float baro_vpos;float heading;float[3] mag_field;uint8_t[4] _padding0;",
        3,
        200_000,
    ),
    (
        "sensor_accel",
        "uint64_t timestamp_sample;uint32_t device_id;float x;float y;float z;float temperature;uint32_t error_count;uint8_t[3] clip_counter;uint8_t samples;uint8_t[4] _padding0;",
        3,
        10_000,
    ),
    (
        "sensor_gyro",
        "uint64_t timestamp_sample;uint32_t device_id;float x;float y;float z;float temperature;uint32_t error_count;uint8_t[3] clip_counter;uint8_t samples;uint8_t[4] _padding0;",
        3,
        10_000,
    ),
    (
        "sensor_mag",
        "uint64_t timestamp_sample;uint32_t device_id;float x;float y;float z;float temperature;uint32_t error_count;uint8_t[4] _padding0;",
        2,
        20_000,
    ),
    (
        "sensor_baro",
        "uint64_t timestamp_sample;uint32_t device_id;float pressure;float temperature;uint32_t error_count;",
        2,
        50_000,
    ),
    (
        "vehicle_imu_status",
        "uint32_t accel_device_id;uint32_t gyro_device_id;float[3] mean_accel;float[3] mean_gyro;float accel_vibration_metric;float gyro_vibration_metric;uint32_t[3] accel_clipping;",
        3,
        500_000,
    ),
    (
        "vehicle_gps_position",
        "uint64_t time_utc_usec;int32_t lat;int32_t lon;int32_t alt;int32_t alt_ellipsoid;float s_variance_m_s;float eph;float epv;float hdop;float vdop;uint8_t fix_type;uint8_t satellites_used;uint8_t[2] _padding0;",
        1,
        200_000,
    ),
    (
        "battery_status",
        "float voltage_v;float current_a;float discharged_mah;float remaining;float temperature;int32_t cell_count;float[14] voltage_cell_v;uint16_t serial_number;bool connected;uint8_t warning;uint8_t[4] _padding0;",
        1,
        200_000,
    ),
    (
        "esc_status",
        "uint16_t counter;uint8_t esc_count;uint8_t esc_online_flags;uint8_t[4] _padding0;esc_report[8] esc;",
        1,
        100_000,
    ),
    (
        "input_rc",
        "uint64_t timestamp_last_signal;int32_t rssi;uint16_t rc_lost_frame_count;uint16_t[18] values;bool rc_failsafe;bool rc_lost;uint8_t channel_count;uint8_t input_source;uint8_t[6] _padding0;",
        1,
        50_000,
    ),
    (
        "manual_control_setpoint",
        "uint64_t timestamp_sample;float roll;float pitch;float yaw;float throttle;bool valid;uint8_t data_source;uint8_t[6] _padding0;",
        1,
        50_000,
    ),
    ("cpuload", "float load;float ram_usage;", 1, 500_000),
    (
        "vehicle_status",
        "uint64_t armed_time;uint64_t takeoff_time;uint32_t onboard_control_sensors_health;uint8_t arming_state;uint8_t nav_state;uint8_t nav_state_user_intention;bool failsafe;uint8_t[4] _padding0;",
        1,
        500_000,
    ),
    (
        "vehicle_land_detected",
        "bool freefall;bool ground_contact;bool maybe_landed;bool landed;uint8_t[4] _padding0;",
        1,
        1_000_000,
    ),
    (
        "vehicle_air_data",
        "uint64_t timestamp_sample;uint32_t baro_device_id;float baro_alt_meter;float baro_temp_celcius;float baro_pressure_pa;float rho;uint8_t[4] _padding0;",
        1,
        50_000,
    ),
    (
        "trajectory_setpoint",
        "float[3] position;float[3] velocity;float[3] acceleration;float[3] jerk;float yaw;float yawspeed;",
        1,
        50_000,
    ),
    (
        "hover_thrust_estimate",
        "uint64_t timestamp_sample;float hover_thrust;float hover_thrust_var;float accel_innov;bool valid;uint8_t[3] _padding0;",
        1,
        100_000,
    ),
    (
        "telemetry_status",
        "float data_rate;float rate_multiplier;uint32_t tx_message_count;uint32_t tx_buffer_overruns;uint8_t type;bool flow_control;uint8_t[2] _padding0;",
        2,
        1_000_000,
    ),
];

const NESTED: &str = "esc_report:uint64_t timestamp;uint32_t esc_errorcount;int32_t esc_rpm;float esc_voltage;float esc_current;float esc_temperature;uint16_t failures;uint8_t esc_address;uint8_t esc_state;";

const START: u64 = 60_000_000;
const LENGTH: u64 = 10_000_000;

/// The bytes of the flight.
pub(super) fn flight() -> Vec<u8> {
    let mut log = header(1, START);
    let mut say = |kind, payload: &[u8]| log.extend(message(kind, payload));
    say(b'B', &flag_bits([0; 8], [0; 8], [0; 3]));
    say(b'F', NESTED.as_bytes());
    for (name, fields, _, _) in TOPICS {
        let text = format!("{name}:uint64_t timestamp;{fields}");
        say(b'F', text.as_bytes());
    }
    say(b'I', &keyed("char[3] sys_name", b"PX4"));
    for i in 0..600u16 {
        let key = format!("float PARAM_{i}");
        say(b'P', &keyed(&key, &f32::from(i).to_le_bytes()));
    }

    // (time of the next row, id, microseconds between rows, bytes of a row after its time)
    let mut series = Vec::new();
    for (name, fields, instances, step) in TOPICS {
        for instance in 0..*instances {
            let id = u16::try_from(series.len()).expect("a few dozen series");
            say(b'A', &subscription(instance, id, name));
            // Small differences of phase, as on a real vehicle.
            let first = START + 137 * u64::from(id);
            series.push((first, id, *step, row_size(fields)));
        }
    }
    say(b'S', &super::super::lay::SYNC);

    let mut state = 1u32;
    let mut next_sync = START + 500_000;
    while let Some(due) = series.iter_mut().min_by_key(|s| (s.0, s.1)) {
        let (time, id, step, size) = *due;
        if time >= START + LENGTH {
            break;
        }
        due.0 += step;
        if time >= next_sync {
            next_sync += 500_000;
            say(b'S', &super::super::lay::SYNC);
            let words = b"[commander] still flying\t";
            say(b'L', &Lay::new().u8(b'6').u64(time).bytes(words).done());
        }
        let mut row = Lay::new().u16(id).u64(time);
        for _ in 0..size {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            row = row.u8(state.to_be_bytes()[0]);
        }
        say(b'D', &row.done());
    }
    log
}

/// Bytes of a row after its time, without the padding at its end.
fn row_size(fields: &str) -> usize {
    let fields = fields.trim_end_matches(';').split(';');
    let sizes: Vec<(usize, bool)> = fields.map(field_size).collect();
    let kept = sizes.iter().rposition(|size| !size.1).map_or(0, |i| i + 1);
    sizes[..kept].iter().map(|size| size.0).sum()
}

fn field_size(field: &str) -> (usize, bool) {
    let (kind, name) = field.split_once(' ').expect("written above");
    let (kind, count) = match kind.trim_end_matches(']').split_once('[') {
        Some((kind, count)) => (kind, count.parse().expect("written above")),
        None => (kind, 1),
    };
    let size = match kind {
        "bool" | "uint8_t" => 1,
        "uint16_t" => 2,
        "int32_t" | "uint32_t" | "float" => 4,
        "uint64_t" | "double" => 8,
        "esc_report" => 32,
        other => panic!("no size for {other}"),
    };
    (size * count, name.starts_with("_padding"))
}
