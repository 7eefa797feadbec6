"""One log: what it is, what went wrong, one topic over time.

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

# The busiest topic, where none is named.
name = sys.argv[2] if len(sys.argv) > 2 else max(log.topics.values(), key=lambda topic: topic.count).name
topic = log[name]
print(topic)
for field in topic.fields:
    print(f"  {field.name}: {field.type} {field.unit or ''}".rstrip())
for number, message in enumerate(topic.messages()):
    if number == 3:
        break
    print(f"  {message}")
