"""Calibrates a RocketLogger and checks a measurement. Usage: calibrate.py FOLDER OUT"""

import os
import sys
import warnings

import numpy as np
from rocketlogger.calibration import CALIBRATION_SETUP_BASIC, RocketLoggerCalibration, regression_linear
from rocketlogger.data import RocketLoggerData, RocketLoggerDataError, RocketLoggerFileError

folder, out = sys.argv[1:]
data = RocketLoggerData(os.path.join(folder, "test_full.rld"))
print("header", data._header["sample_rate"], data._header["data_block_size"], data.get_header(), data.get_comment())
for index, channel in enumerate(data._header["channels"]):
    values = data._data[index]
    print(channel["name"], channel["unit"], channel["scale"], channel["valid_link"], len(values), float(np.sum(values)))
print("blocks", data._timestamps_realtime, np.diff(data._timestamps_monotonic))
print("valid", data.get_validity(["I1L", "V1"]).mean(axis=0))
data.merge_channels()
current, voltage = data.get_data("I1").squeeze(), data.get_data("V1").squeeze()
print("energy", f"{np.trapezoid(current * voltage, data.get_time()):.9e}", data.get_unit(["I1", "V1"]))

calibration = RocketLoggerCalibration()
calibration.load_design_data()
calibration.write_calibration_file(out)
again = RocketLoggerCalibration(out)
print(again == calibration, regression_linear(np.array([-10.0, 0.0, 10.0]), np.array([-1.0, 0.1, 1.2]), zero_weight=3))
again.print_statistics()
print(CALIBRATION_SETUP_BASIC.get_voltage_setpoints(), CALIBRATION_SETUP_BASIC.get_current_low_step(adc_units=True))
try:
    RocketLoggerData(os.path.join(folder, "test_truncated.rld"))
except RocketLoggerDataError as error:
    print(str(error).split(" (")[0])
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    cut = RocketLoggerData(os.path.join(folder, "test_truncated.rld"), recovery=True)
    print([warning.category.__name__ for warning in found], cut.get_data().shape)
try:
    RocketLoggerData(out)
except RocketLoggerFileError as error:
    print(str(error).split(" (")[0])
