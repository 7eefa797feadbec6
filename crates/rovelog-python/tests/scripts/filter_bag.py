"""Copies some messages of a bag with another frame, and prints the content of the copy.

Usage: filter_bag.py BAG OUT
"""

import sys

import rosbag
from rosbag import Bag, Compression

count = 0
with Bag(sys.argv[1]) as bag, rosbag.Bag(sys.argv[2], "w", compression=Compression.BZ2) as out:
    start = None
    for topic, msg, t in bag.read_messages():
        start = start or t
        if (t - start).to_sec() > 8.0:
            continue
        if msg._has_header:
            msg.header.frame_id = "robot/" + msg.header.frame_id
            out.write(topic, msg, msg.header.stamp if msg.header.stamp.to_sec() > 0 else t)
        else:
            out.write(topic, msg, t)
        count += 1

with rosbag.Bag(sys.argv[2]) as bag:
    print(count, bag.get_message_count(), bag.get_compression_info().compression)
    for topic, info in sorted(bag.get_type_and_topic_info()[1].items()):
        print(topic, info.msg_type, info.message_count, info.connections, info.frequency)
    print("\n".join(line for line in str(bag).splitlines() if not line.startswith(("path", "size", "compress", "uncompress"))))
    for topic, msg, t in bag:
        print(topic, t.secs, t.nsecs, type(msg).__name__ != "", len(str(msg).splitlines()))
        print(str(msg)[:400])
    raws = [(topic, raw[0], len(raw[1]), raw[2], raw[4]._type) for topic, raw, t in bag.read_messages(raw=True)]
    print(sorted(raws)[:10])
try:
    rosbag.Bag(sys.argv[0])
except rosbag.ROSBagException as error:
    print(str(error).partition(":")[0])
