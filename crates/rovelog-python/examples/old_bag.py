"""Prints the topics of a ROS bag, and the first message of each topic.

python old_bag.py BAG
"""

import sys

from rovelog.compat.rosbag import Bag

with Bag(sys.argv[1]) as bag:
    for topic, facts in bag.get_type_and_topic_info().topics.items():
        hertz = "" if facts.frequency is None else f", {facts.frequency:.1f} Hz"
        print(f"{topic}: {facts.message_count} of {facts.msg_type}{hertz}")
    seen: set[str] = set()
    for topic, message, stamp in bag.read_messages():
        if topic not in seen:
            seen.add(topic)
            print(f"--- {topic} at {stamp.to_sec():.3f}")
            print("\n".join(str(message).splitlines()[:8]))
