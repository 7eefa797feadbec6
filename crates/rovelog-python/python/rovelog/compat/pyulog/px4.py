"""PX4-specific evaluations of a ULog, with the API of pyulog."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rovelog.compat.pyulog.core import ULog

# The names of MAV_TYPE values in pyulog, by number.
MAV_TYPES = (
    "Generic",
    "Fixed Wing",
    "Quadrotor",
    "Coaxial helicopter",
    "Normal helicopter with tail rotor",
    "Ground installation",
    "Ground Control Station",
    "Airship, controlled",
    "Free balloon, uncontrolled",
    "Rocket",
    "Ground Rover",
    "Surface Vessel, Boat, Ship",
    "Submarine",
    "Hexarotor",
    "Octorotor",
    "Tricopter",
    "Flapping wing",
    "Kite",
    "Onboard Companion Controller",
    "Two-rotor VTOL (Tailsitter)",
    "Quad-rotor VTOL (Tailsitter)",
    "Tiltrotor VTOL",
    "VTOL Standard",
    "VTOL Tailsitter",
    "VTOL reserved 4",
    "VTOL reserved 5",
    "Onboard Gimbal",
    "Onboard ADSB Peripheral",
)
ESTIMATORS = ("INAV", "LPE", "EKF2", "Q")
WITH_QUATERNION = (
    "vehicle_attitude",
    "vehicle_vision_attitude",
    "vehicle_attitude_groundtruth",
    "vehicle_attitude_setpoint:_d",
)


class PX4ULog:
    """Information about the vehicle, and angles from quaternions."""

    def __init__(self, ulog_object: ULog) -> None:
        self._ulog = ulog_object

    def get_mav_type(self) -> str:
        """Returns the kind of vehicle according to the parameter MAV_TYPE."""
        number = self._ulog.initial_parameters.get("MAV_TYPE")
        known = isinstance(number, int) and 0 <= number < len(MAV_TYPES)
        return MAV_TYPES[number] if known else "unknown type"  # type: ignore[index]

    def get_estimator(self) -> str:
        """Returns the estimator according to the parameter SYS_MC_EST_GROUP. Fixed wings always use
        EKF2.
        """
        parameters = self._ulog.initial_parameters
        if parameters.get("MAV_TYPE") == 1:
            return "EKF2"
        group = parameters.get("SYS_MC_EST_GROUP", 2)
        return ESTIMATORS[int(group)] if group in range(len(ESTIMATORS)) else f"unknown ({group})"

    def add_roll_pitch_yaw(self, messages: Iterable[str] | None = None) -> None:
        """Adds `roll`, `pitch` and `yaw` in rad to datasets with a quaternion `q`.

        `messages` are names of datasets. For a name such as `name:_d`, the quaternion is `q_d`, and
        the angles are `roll_d`, `pitch_d` and `yaw_d`.
        """
        for message in WITH_QUATERNION if messages is None else messages:
            name, suffix = (message[:-3], "_d") if message.endswith(":_d") else (message, "")
            for dataset in self._ulog.data_list:
                if dataset.name == name:
                    self._add_angles(dataset, suffix)

    @staticmethod
    def _add_angles(dataset: ULog.Data, suffix: str) -> None:
        w, x, y, z = (dataset.data[f"q{suffix}[{index}]"] for index in range(4))
        # The order of operations is that of pyulog, so that results are equal to the last bit.
        roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
        pitch = np.arcsin(2.0 * (w * y - z * x))
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        dataset.data.update({f"roll{suffix}": roll, f"pitch{suffix}": pitch, f"yaw{suffix}": yaw})

    def get_configured_rc_input_names(self, channel: int) -> list[str] | None:
        """Returns the functions that are mapped to an RC channel, such as `Roll` or `Mode_sw`.
        Channels start at 0.
        """
        found = [
            name.removeprefix("RC_MAP_").capitalize()
            for name, value in self._ulog.initial_parameters.items()
            if name.startswith("RC_MAP_") and value == channel + 1
        ]
        return found or None
