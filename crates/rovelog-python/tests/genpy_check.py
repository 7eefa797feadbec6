"""Compares texts of messages with those of genpy. Usage: `genpy_check.py FILE`, with an interpreter
that has genpy.

FILE contains a pickled list of (type, definition, payload, text). The script prints the
differences, and the number of compared texts.
"""

import pickle
import sys

import genpy.dynamic

with open(sys.argv[1], "rb") as file:
    texts = pickle.load(file)
classes = {}
compared = 0
for kind, definition, payload, text in texts:
    if (kind, definition) not in classes:
        try:
            classes[kind, definition] = genpy.dynamic.generate_dynamic(kind, definition)[kind]
        except Exception:  # Definitions that genpy does not take.
            classes[kind, definition] = None
    if classes[kind, definition] is None:
        continue
    message = classes[kind, definition]()
    message.deserialize(payload)
    compared += 1
    if str(message) != text:
        print("differs:", kind, repr(str(message)), repr(text))
print(compared)
