"""Prints a summary of one log: state, problems, warnings, and the first records of a topic.

python one_log.py LOG [TOPIC]
"""

import sys

import rovelog as rl

log = rl.open(sys.argv[1])
print(log)
print(f"  {log.start or log.start_ns} for {log.duration}, {log.state}")
for problem in log.problems:
    print(f"  {problem.code} bytes {problem.start}..{problem.end}: {problem.message}")
for line in log.text:
    if line.level <= 4:
        print(f"  {line.level_name}: {line.text}")

# By default, the topic with the most records is shown.
name = sys.argv[2] if len(sys.argv) > 2 else max(log.topics.values(), key=lambda topic: topic.count).name
topic = log[name]
print(topic)
for field in topic.fields:
    print(f"  {field.name}: {field.type} {field.unit or ''}".rstrip())
for number, message in enumerate(topic.messages()):
    if number == 3:
        break
    print(f"  {message}")
