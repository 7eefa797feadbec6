"""Calibration of a RocketLogger with measurements of known values, with the API of rocketlogger.

A source is stepped through known values, the set-points. For each channel, the mean of the
measurement at each set-point is computed, and a line through (mean, set-point) gives the offset and
the scale.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from rovelog.compat.rocketlogger.data import RocketLoggerData, RocketLoggerFileError

ROCKETLOGGER_CALIBRATION_FILE = "/etc/rocketlogger/calibration.dat"
"""Path of the calibration on a RocketLogger."""

FULL_SCALE = 4.0 / 2**23
"""Voltage of the lowest bit of the converter."""
_ROCKETLOGGER_ADC_STEP_V = -FULL_SCALE * 10 / 3.9
_ROCKETLOGGER_ADC_STEP_IL = FULL_SCALE / 680 / 2 / 2
_ROCKETLOGGER_ADC_STEP_IH = FULL_SCALE / 0.05 / 75 / 2 / 2
_CALIBRATION_FILE_MAGIC = 0x434C5225
_CALIBRATION_FILE_VERSION = 2
_CALIBRATION_FILE_HEADER_LENGTH = 16
_CALIBRATION_CHANNEL_NAMES = ["V1", "V2", "V3", "V4", "I1L", "I1H", "I2L", "I2H", "DT"]
_CALIBRATION_FILE_DTYPE = np.dtype(
    [
        ("file_magic", "<u4"),
        ("file_version", "<u2"),
        ("header_length", "<u2"),
        ("calibration_time", "<M8[s]"),
        ("offset", ("<i4", len(_CALIBRATION_CHANNEL_NAMES))),
        ("scale", ("<f8", len(_CALIBRATION_CHANNEL_NAMES))),
    ]
)
_CALIBRATION_CHANNEL_SCALE_BASE = [1e-8] * 4 + [1e-11, 1e-9] * 2
"""Units of the scales in a calibration file, in V and A."""
_CALIBRATION_CHANNEL_SCALE_DEFAULT = [_ROCKETLOGGER_ADC_STEP_V] * 4 + [
    _ROCKETLOGGER_ADC_STEP_IL,
    _ROCKETLOGGER_ADC_STEP_IH,
] * 2
_CALIBRATION_PRU_CYCLES_OFFSET = 12
_CALIBRATION_PRU_CYCLES_SCALE = 5
"""The channel DT counts cycles of 5 ns."""
STABLE_SHARE = 0.75
"""Share of the duration of a set-point in which the measurement must be stable."""

Regression = Callable[..., tuple[float, float]]


class RocketLoggerCalibrationError(Exception):
    """There is no calibration, or it is invalid."""


def regression_linear(measurement: Any, reference: Any, zero_weight: float = 1) -> tuple[float, float]:
    """Returns the offset and the scale of a line fitted to the measurements.

    `zero_weight` is the weight of the set-points at zero.
    """
    weight = np.where(np.isclose(np.abs(reference), 0), zero_weight, 1)
    scale, offset = np.polyfit(measurement, reference, 1, w=weight)
    return round(offset / scale), scale


def _extract_setpoint_measurement(measurement_data: Any, setpoint_step: float, filter_window_length: int = 150) -> Any:
    """Returns the mean measurement at each set-point. `setpoint_step` is in the unit of the
    measurement.
    """
    steps = np.flatnonzero(np.abs(np.diff(measurement_data)) > setpoint_step / 2)
    if len(steps) < 2:
        raise ValueError("no valid set-point steps found in measurement data")
    short = filter_window_length // 100
    if short <= 0:
        raise ValueError("filter window length needs to be strictly positive value")
    smooth = np.convolve(measurement_data, np.full(short, 1 / short), mode="same")
    # A sample is stable if it changes less than twice the root mean square of the changes between
    # steps.
    change = np.abs(np.diff(smooth, prepend=0))
    usual = np.sqrt(np.mean(change[change < setpoint_step] ** 2))
    window = np.full(filter_window_length, 1 / filter_window_length)
    share = np.convolve(change < 2 * usual, window, mode="same")
    # A set-point is where (almost) all samples of a window are stable. The window is centered, so
    # the range of stable windows is extended by half a window on both sides.
    inside = share > (filter_window_length - 1.5) / filter_window_length
    edges = np.diff(inside.astype(np.int8), prepend=0)
    half = filter_window_length // 2
    starts, ends = np.flatnonzero(edges > 0) - half, np.flatnonzero(edges < 0) + half
    complete = (starts > steps.min() - half) & (ends < steps.max() + half)
    if not complete.any():
        raise ValueError("no set-points found: you might want to check the set-point step scale?")
    return np.array([measurement_data[start:end].mean() for start, end in zip(starts[complete], ends[complete], strict=True)])


class RocketLoggerCalibrationSetup:
    """The set-points of a calibration measurement.

    The sweep consists of `setpoint_count` values from the negative to the positive end. With
    `dual_sweep`, it goes up and down again. Steps are in V and A. Each set-point lasts at least
    `setpoint_delay` seconds.
    """

    def __init__(
        self,
        setpoint_count: int,
        setpoint_step_voltage: float,
        setpoint_step_current_low: float,
        setpoint_step_current_high: float,
        setpoint_delay: float,
        dual_sweep: bool,
    ) -> None:
        if setpoint_count % 2 != 1:
            raise ValueError("Linear sweep expects odd number of measurement points")
        if dual_sweep and setpoint_count % 4 != 1:
            raise ValueError("Dual sweep expects multiple of 4 + 1 measurement points")
        self._setpoint_count = setpoint_count
        self._step_voltage = setpoint_step_voltage
        self._step_current_low = setpoint_step_current_low
        self._step_current_high = setpoint_step_current_high
        self._delay = setpoint_delay
        self._dual_sweep = dual_sweep

    def get_voltage_setpoints(self, adc_units: bool = False) -> Any:
        """Returns the voltages in V, or in bits of the converter."""
        return self._get_setpoints(self.get_voltage_step(adc_units))

    def get_current_low_setpoints(self, adc_units: bool = False) -> Any:
        """Returns the currents of the low range in A, or in bits of the converter."""
        return self._get_setpoints(self.get_current_low_step(adc_units))

    def get_current_high_setpoints(self, adc_units: bool = False) -> Any:
        """Returns the currents of the high range in A, or in bits of the converter."""
        return self._get_setpoints(self.get_current_high_step(adc_units))

    def get_voltage_step(self, adc_units: bool = False) -> float:
        """Returns the step of the voltage in V, or in bits of the converter."""
        return abs(self._step_voltage / (_ROCKETLOGGER_ADC_STEP_V if adc_units else 1))

    def get_current_low_step(self, adc_units: bool = False) -> float:
        """Returns the step of the low current in A, or in bits of the converter."""
        return abs(self._step_current_low / (_ROCKETLOGGER_ADC_STEP_IL if adc_units else 1))

    def get_current_high_step(self, adc_units: bool = False) -> float:
        """Returns the step of the high current in A, or in bits of the converter."""
        return abs(self._step_current_high / (_ROCKETLOGGER_ADC_STEP_IH if adc_units else 1))

    def get_delay(self) -> float:
        """Returns the minimum duration of a set-point in seconds."""
        return self._delay

    def get_setpoint_count(self) -> int:
        """Returns the number of set-points."""
        return self._setpoint_count

    def _get_max_setpoint(self, setpoint_step: float) -> float:
        return setpoint_step * (self._setpoint_count - 1) / (4 if self._dual_sweep else 2)

    def _get_setpoints(self, setpoint_step: float) -> Any:
        end = self._get_max_setpoint(setpoint_step)
        up = np.arange(-end, end + setpoint_step, setpoint_step)
        return np.concatenate((up, up[-2::-1])) if self._dual_sweep else up


CALIBRATION_SETUP_SMU2450 = RocketLoggerCalibrationSetup(201, 100e-3, 20e-6, 2e-3, 250e-3, True)
"""Setup for a sweep with a Keithley 2450 source."""
CALIBRATION_SETUP_BASIC = RocketLoggerCalibrationSetup(3, 5.0, 2e-3, 0.5, 250e-3, False)
"""Setup with three set-points: both ends, and zero."""


class RocketLoggerCalibration:
    """Offsets and scales of all channels, from a calibration file or from measurements.

    One argument is the path of a calibration file. Five arguments are the measurements for
    `load_measurement_data`.
    """

    def __init__(self, *args: Any) -> None:
        self._data_v: RocketLoggerData | None = None
        self._data_i1l: RocketLoggerData | None = None
        self._data_i1h: RocketLoggerData | None = None
        self._data_i2l: RocketLoggerData | None = None
        self._data_i2h: RocketLoggerData | None = None
        self._calibration_time: Any = None
        self._calibration_scale: Any = None
        self._calibration_offset: Any = None
        self._clear_errors()
        if len(args) == 1:
            self.read_calibration_file(*args)
        elif len(args) == 5:
            self.load_measurement_data(*args)

    def _clear_errors(self) -> None:
        self._error_offset: Any = None
        self._error_scale: Any = None
        self._error_rmse: Any = None

    def load_design_data(self) -> None:
        """Sets the nominal values of the circuit."""
        self._calibration_time = np.datetime64(0, "s")
        self._set([0] * len(_CALIBRATION_CHANNEL_SCALE_DEFAULT), _CALIBRATION_CHANNEL_SCALE_DEFAULT)
        self._clear_errors()

    def _set(self, offsets: Any, scales: Any) -> None:
        """Sets offsets and scales. Scales are in V or A per bit. The channel DT always has its
        fixed values.
        """
        in_file = np.asarray(scales, "<f8") / _CALIBRATION_CHANNEL_SCALE_BASE
        self._calibration_offset = np.array([*offsets, _CALIBRATION_PRU_CYCLES_OFFSET], dtype="<i4")
        self._calibration_scale = np.append(in_file, _CALIBRATION_PRU_CYCLES_SCALE)

    def load_measurement_data(self, data_v: Any, data_i1l: Any, data_i1h: Any, data_i2l: Any, data_i2h: Any) -> None:
        """Loads the measurements: voltages, then the low and the high range of each current.

        Each argument is a `RocketLoggerData` or the path of a file.
        """

        def opened(data: Any) -> RocketLoggerData:
            if isinstance(data, RocketLoggerData):
                return data
            if os.path.isfile(data):
                return RocketLoggerData(data)
            raise ValueError(f"'{data}' is not valid measurement data nor an existing data file.")

        found = [opened(data) for data in (data_v, data_i1l, data_i1h, data_i2l, data_i2h)]
        if len({data.get_header()["sample_rate"] for data in found}) > 1:
            raise RocketLoggerCalibrationError("inconsistent sample rate across measurements!")
        self._data_v, self._data_i1l, self._data_i1h, self._data_i2l, self._data_i2h = found
        self._clear_errors()

    def _measurements(self) -> list[RocketLoggerData]:
        """Returns the measurement for each channel. All voltages share one measurement."""
        voltage = [self._data_v] * 4
        found = [data for data in (*voltage, self._data_i1l, self._data_i1h, self._data_i2l, self._data_i2h) if data]
        if len(found) < len(_CALIBRATION_CHANNEL_SCALE_DEFAULT):
            raise RocketLoggerCalibrationError(
                "No measurement data loaded for recalibration. Use load_measurement_data() first to load data."
            )
        return found

    def recalibrate(
        self,
        setup: RocketLoggerCalibrationSetup,
        fix_signs: bool = True,
        target_offset_error: float = 1,
        regression_algorithm: Regression = regression_linear,
        **kwargs: Any,
    ) -> None:
        """Computes the calibration of all channels from the measurements.

        - `fix_signs`: gives each scale the sign of its nominal value
        - `target_offset_error`: factor between the largest error at zero and the error of the
          offset
        - `regression_algorithm`: function that is called with the means at the set-points, the
          values of the set-points, and `kwargs`, and returns the offset and the scale
        """
        measurements = self._measurements()
        if target_offset_error < 1:
            raise ValueError("target_offset_error factor needs to be >= 1.")
        currents = [setup.get_current_low_setpoints(), setup.get_current_high_setpoints()]
        references = [setup.get_voltage_setpoints()] * 4 + currents * 2
        steps = [setup.get_voltage_step(True)] * 4 + [setup.get_current_low_step(True), setup.get_current_high_step(True)] * 2
        window = int(STABLE_SHARE * measurements[0].get_header()["sample_rate"] * setup.get_delay())
        traces = [
            data.get_data(name).squeeze()
            for data, name in zip(measurements, _CALIBRATION_CHANNEL_NAMES, strict=False)
        ]
        means = [
            _extract_setpoint_measurement(trace, step, filter_window_length=window)
            for trace, step in zip(traces, steps, strict=True)
        ]
        pairs = list(zip(means, references, strict=True))
        lines = [regression_algorithm(mean, reference, **kwargs) for mean, reference in pairs]
        errors = [_errors(*pair, *line, target_offset_error) for pair, line in zip(pairs, lines, strict=True)]
        offsets, scales = zip(*lines, strict=True)
        if fix_signs:
            scales = tuple(np.copysign(scales, _CALIBRATION_CHANNEL_SCALE_DEFAULT))
        self._set(offsets, scales)
        start = min(data.get_header()["start_time"] for data in measurements)
        self._calibration_time = np.array(start, dtype="<M8[s]")
        # The channel DT is not measured and has no errors.
        columns = [np.append(column, np.nan) for column in np.array(errors).T]
        self._error_offset, self._error_scale, self._error_rmse = columns

    def print_statistics(self) -> None:
        """Prints the calibration, and its errors if it was computed from measurements."""
        print("RocketLogger Calibration Statistics")
        if self._exists():
            print(f"Measurement time:   {self._calibration_time}\n")
            print("Calibration values:")
            print("  Channel  :  Offset [bit]  :  Scale [unit/bit]")
            rows = zip(_CALIBRATION_CHANNEL_NAMES, self._calibration_offset, self._calibration_scale, strict=True)
            for name, offset, scale in rows:
                print(f"  {name:7s}  :  {offset:12d}  :  {scale:16.6f}")
        else:
            print("no calibration data available")
        print()
        if self._error_offset is None:
            print("no error calculation data available")
            return
        print("Error calculation values:")
        print("  Channel  :  Offset [unit]  :  Scale [%]  :  RMSE [unit]")
        errors = zip(_CALIBRATION_CHANNEL_NAMES, self._error_offset, self._error_scale, self._error_rmse, strict=True)
        for name, offset, scale, rmse in errors:
            print(f"  {name:7s}  :  {offset:13.6g}  :  {100 * scale:9.5f}  :  {rmse:11.6g}")

    def read_calibration_file(self, filename: str = ROCKETLOGGER_CALIBRATION_FILE) -> None:
        """Reads a calibration file of version 2."""
        data = np.fromfile(filename, dtype=_CALIBRATION_FILE_DTYPE).squeeze()
        if data.size == 0:
            raise RocketLoggerFileError("Invalid RocketLogger calibration file, unable to read data.")
        magic, length = int(data["file_magic"]), int(data["header_length"])
        if magic != _CALIBRATION_FILE_MAGIC:
            raise RocketLoggerFileError(f"Invalid RocketLogger calibration file magic 0x{magic:08x}.")
        if data["file_version"] != _CALIBRATION_FILE_VERSION:
            raise RocketLoggerFileError(
                f"Unsupported RocketLogger calibration file version {data['file_version']}."
            )
        if length != _CALIBRATION_FILE_HEADER_LENGTH:
            raise RocketLoggerFileError(
                f"Invalid RocketLogger calibration file, invalid header length 0x{length:08x}."
            )
        if data["calibration_time"] > np.datetime64("now"):
            raise RocketLoggerCalibrationError("Invalid calibration time in calibration file")
        self._calibration_time = data["calibration_time"]
        self._calibration_offset = data["offset"]
        self._calibration_scale = data["scale"]
        self._clear_errors()

    def write_calibration_file(self, filename: str = "calibration.dat") -> None:
        """Writes the calibration to a file."""
        if not self._exists():
            raise RocketLoggerCalibrationError("No calibration data available. Perform recalibration first.")
        head = (_CALIBRATION_FILE_MAGIC, _CALIBRATION_FILE_VERSION, _CALIBRATION_FILE_HEADER_LENGTH)
        row = (*head, self._calibration_time, self._calibration_offset, self._calibration_scale)
        np.array([row], dtype=_CALIBRATION_FILE_DTYPE).tofile(filename)

    def write_log_file(self, filename: str = "calibration.log") -> None:
        """Writes the output of `print_statistics` to a file."""
        with open(filename, "w") as out, contextlib.redirect_stdout(out):
            self.print_statistics()

    def _exists(self) -> bool:
        return self._calibration_time is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RocketLoggerCalibration):
            return False
        return (
            bool(self._calibration_time == other._calibration_time)
            and np.array_equal(self._calibration_scale, other._calibration_scale)
            and np.array_equal(self._calibration_offset, other._calibration_offset)
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


def _errors(mean: Any, reference: Any, offset: float, scale: float, factor: float) -> tuple[float, float, float]:
    """Returns the errors of a channel: error of the offset, relative error of the scale, and total
    error.

    The error of the scale is the largest one of the set-points above a tenth of the range.
    """
    residual = (mean + offset) * scale - reference
    at_zero = float(np.abs(residual[np.isclose(reference, 0)]).max()) * factor
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(np.fmin(np.abs(residual - at_zero), np.abs(residual + at_zero)) / reference)
    large = np.abs(reference) > 0.1 * np.abs(np.max(reference))
    return at_zero, float(relative[large].max()), float(np.sqrt(residual @ residual))
