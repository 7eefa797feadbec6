"""Compares texts and nested types of messages with those of genpy. Usage: `genpy_check.py FILE`, with
an interpreter that has genpy.

FILE contains two pickled objects: a list of (type, definition, payload, text), and a dict (type,
definition) -> list of (nested type, MD5 sum, definition, types of fields, constants). The script
prints the differences, and the number of compared texts.
"""

import pickle
import sys

import genpy.dynamic

with open(sys.argv[1], "rb") as file:
    texts, types = pickle.load(file)
made = {}


def classes(kind, definition):
    """Returns the classes that genpy generates, by type. Returns None if it rejects the
    definition.
    """
    if (kind, definition) not in made:
        try:
            made[kind, definition] = genpy.dynamic.generate_dynamic(kind, definition)
        except Exception:
            made[kind, definition] = None
    return made[kind, definition]


compared = 0
for kind, definition, payload, text in texts:
    found = classes(kind, definition)
    if found is None:
        continue
    message = found[kind]()
    message.deserialize(payload)
    compared += 1
    if str(message) != text:
        print("differs:", kind, repr(str(message)), repr(text))
for (kind, definition), nested in types.items():
    found = classes(kind, definition)
    for name, md5, text, fields, constants in nested if found else ():
        known = found[name]
        if (known._md5sum, known._full_text, known._slot_types) != (md5, text, fields):
            print("differs:", kind, name, md5, repr(text), fields)
        if any(getattr(known, constant) != value for constant, value in constants.items()):
            print("differs:", kind, name, constants)
print(compared)
