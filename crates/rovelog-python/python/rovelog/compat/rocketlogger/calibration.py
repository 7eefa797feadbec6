"""Calibration of a RocketLogger by measurements of known values, with the API of rocketlogger."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from rovelog.compat.rocketlogger.data import RocketLoggerData, RocketLoggerFileError

ROCKETLOGGER_CALIBRATION_FILE = "/etc/rocketlogger/calibration.dat"
"""Where a RocketLogger has its calibration."""

FULL_SCALE = 4.0 / 2**23
"""Volts for the lowest bit of the converter."""
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
"""The units of the scales in a file, V and A."""
_CALIBRATION_CHANNEL_SCALE_DEFAULT = [_ROCKETLOGGER_ADC_STEP_V] * 4 + [
    _ROCKETLOGGER_ADC_STEP_IL,
    _ROCKETLOGGER_ADC_STEP_IH,
] * 2
_CALIBRATION_PRU_CYCLES_OFFSET = 12
_CALIBRATION_PRU_CYCLES_SCALE = 5
"""The channel DT counts cycles of 5 ns."""
STABLE_SHARE = 0.75
"""The share of the time of a set-point in which the measurement has to be stable."""

Regression = Callable[..., tuple[float, float]]


class RocketLoggerCalibrationError(Exception):
    """There is no calibration, or it cannot be used."""


def regression_linear(measurement: Any, reference: Any, zero_weight: float = 1) -> tuple[float, float]:
    """Offset and scale of the line through the measurements; `zero_weight` is the weight of the set-points at zero."""
    weight = np.where(np.isclose(np.abs(reference), 0), zero_weight, 1)
    scale, offset = np.polyfit(measurement, reference, 1, w=weight)
    return round(offset / scale), scale


def _extract_setpoint_measurement(measurement_data: Any, setpoint_step: float, filter_window_length: int = 150) -> Any:
    """The mean of each set-point in a measurement that goes through them; `setpoint_step` is in its units."""
    steps = np.flatnonzero(np.abs(np.diff(measurement_data)) > setpoint_step / 2)
    if len(steps) < 2:
        raise ValueError("no valid set-point steps found in measurement data")
    short = filter_window_length // 100
    if short <= 0:
        raise ValueError("filter window length needs to be strictly positive value")
    smooth = np.convolve(measurement_data, np.full(short, 1 / short), mode="same")
    # Stable are the samples that change less than twice as much as usual between steps.
    change = np.abs(np.diff(smooth, prepend=0))
    usual = np.sqrt(np.mean(change[change < setpoint_step] ** 2))
    window = np.full(filter_window_length, 1 / filter_window_length)
    share = np.convolve(change < 2 * usual, window, mode="same")
    inside = share > (filter_window_length - 1.5) / filter_window_length
    edges = np.diff(inside.astype(np.int8), prepend=0)
    half = filter_window_length // 2
    starts, ends = np.flatnonzero(edges > 0) - half, np.flatnonzero(edges < 0) + half
    kept = (starts > steps.min() - half) & (ends < steps.max() + half)
    if not kept.any():
        raise ValueError("no set-points found: you might want to check the set-point step scale?")
    return np.array([measurement_data[start:end].mean() for start, end in zip(starts[kept], ends[kept], strict=True)])


class RocketLoggerCalibrationSetup:
    """The values that the calibrated channels have measured, one after the other.

    `setpoint_count` values, from the negative to the positive end in steps (V, A), and with `dual_sweep` back again;
    at least `setpoint_delay` seconds each.
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
        """The voltages in V, or in bits of the converter."""
        return self._get_setpoints(self.get_voltage_step(adc_units))

    def get_current_low_setpoints(self, adc_units: bool = False) -> Any:
        """The currents of the low range in A, or in bits of the converter."""
        return self._get_setpoints(self.get_current_low_step(adc_units))

    def get_current_high_setpoints(self, adc_units: bool = False) -> Any:
        """The currents of the high range in A, or in bits of the converter."""
        return self._get_setpoints(self.get_current_high_step(adc_units))

    def get_voltage_step(self, adc_units: bool = False) -> float:
        """The step of the voltage in V, or in bits of the converter."""
        return abs(self._step_voltage / (_ROCKETLOGGER_ADC_STEP_V if adc_units else 1))

    def get_current_low_step(self, adc_units: bool = False) -> float:
        """The step of the low current in A, or in bits of the converter."""
        return abs(self._step_current_low / (_ROCKETLOGGER_ADC_STEP_IL if adc_units else 1))

    def get_current_high_step(self, adc_units: bool = False) -> float:
        """The step of the high current in A, or in bits of the converter."""
        return abs(self._step_current_high / (_ROCKETLOGGER_ADC_STEP_IH if adc_units else 1))

    def get_delay(self) -> float:
        """The shortest time of a set-point, s."""
        return self._delay

    def get_setpoint_count(self) -> int:
        """The number of set-points."""
        return self._setpoint_count

    def _get_max_setpoint(self, setpoint_step: float) -> float:
        return setpoint_step * (self._setpoint_count - 1) / (4 if self._dual_sweep else 2)

    def _get_setpoints(self, setpoint_step: float) -> Any:
        end = self._get_max_setpoint(setpoint_step)
        up = np.arange(-end, end + setpoint_step, setpoint_step)
        return np.concatenate((up, up[-2::-1])) if self._dual_sweep else up


CALIBRATION_SETUP_SMU2450 = RocketLoggerCalibrationSetup(201, 100e-3, 20e-6, 2e-3, 250e-3, True)
"""A sweep with a Keithley 2450."""
CALIBRATION_SETUP_BASIC = RocketLoggerCalibrationSetup(3, 5.0, 2e-3, 0.5, 250e-3, False)
"""Three values: the ends, and zero."""


class RocketLoggerCalibration:
    """Offsets and scales of all channels, of a file or of measurements.

    With one argument, reads this file; with five, takes the measurements as `load_measurement_data` does.
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
        self._forget_errors()
        if len(args) == 1:
            self.read_calibration_file(*args)
        elif len(args) == 5:
            self.load_measurement_data(*args)

    def _forget_errors(self) -> None:
        self._error_offset: Any = None
        self._error_scale: Any = None
        self._error_rmse: Any = None

    def load_design_data(self) -> None:
        """Sets the values that the circuit was designed for."""
        self._calibration_time = np.datetime64(0, "s")
        self._set([0] * len(_CALIBRATION_CHANNEL_SCALE_DEFAULT), _CALIBRATION_CHANNEL_SCALE_DEFAULT)
        self._forget_errors()

    def _set(self, offsets: Any, scales: Any) -> None:
        """Sets the values of the measured channels (V or A per bit), and those of the counter."""
        in_file = np.asarray(scales, "<f8") / _CALIBRATION_CHANNEL_SCALE_BASE
        self._calibration_offset = np.array([*offsets, _CALIBRATION_PRU_CYCLES_OFFSET], dtype="<i4")
        self._calibration_scale = np.append(in_file, _CALIBRATION_PRU_CYCLES_SCALE)

    def load_measurement_data(self, data_v: Any, data_i1l: Any, data_i1h: Any, data_i2l: Any, data_i2h: Any) -> None:
        """Takes measurements or names of files: of all voltages, and of the low and high range of both currents."""

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
        self._forget_errors()

    def _measurements(self) -> list[RocketLoggerData]:
        """The measurement of each channel."""
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
        """Calibrates all channels by the measurements.

        `fix_signs` gives each scale the sign that it was designed for; `target_offset_error` says how many times the
        largest error at zero is the error of the offset; `regression_algorithm` gets the means of the set-points, their
        values, and `kwargs`, and returns offset and scale.
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
        # The counter is not measured.
        columns = [np.append(column, np.nan) for column in np.array(errors).T]
        self._error_offset, self._error_scale, self._error_rmse = columns

    def print_statistics(self) -> None:
        """Prints the calibration, and its errors if it was made of measurements."""
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
        self._forget_errors()

    def write_calibration_file(self, filename: str = "calibration.dat") -> None:
        """Writes the calibration."""
        if not self._exists():
            raise RocketLoggerCalibrationError("No calibration data available. Perform recalibration first.")
        head = (_CALIBRATION_FILE_MAGIC, _CALIBRATION_FILE_VERSION, _CALIBRATION_FILE_HEADER_LENGTH)
        row = (*head, self._calibration_time, self._calibration_offset, self._calibration_scale)
        np.array([row], dtype=_CALIBRATION_FILE_DTYPE).tofile(filename)

    def write_log_file(self, filename: str = "calibration.log") -> None:
        """Writes what `print_statistics` prints."""
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
    """The errors of a channel: of the offset, of the scale (largest above a tenth of the range), and their root."""
    residual = (mean + offset) * scale - reference
    at_zero = float(np.abs(residual[np.isclose(reference, 0)]).max()) * factor
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(np.fmin(np.abs(residual - at_zero), np.abs(residual + at_zero)) / reference)
    large = np.abs(reference) > 0.1 * np.abs(np.max(reference))
    return at_zero, float(relative[large].max()), float(np.sqrt(residual @ residual))
