"""The parts of TensorFlow's xplane.proto that hold operators' times.

Built here, since importing TensorFlow for its own takes more memory than
reading a profile may. Fields that are not named are skipped by protobuf.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "mets.opspeedup"
_FIELD = descriptor_pb2.FieldDescriptorProto
# message: {field: (number, type, repeated)}; a type in capitals is a message.
_MESSAGES = {
    "XStat": {"metadata_id": (1, "int64", False),
              "str_value": (5, "string", False),
              "ref_value": (7, "uint64", False)},
    "XEvent": {"metadata_id": (1, "int64", False),
               "offset_ps": (2, "int64", False),
               "duration_ps": (3, "int64", False),
               "stats": (4, "XStat", True)},
    "XLine": {"name": (2, "string", False), "events": (4, "XEvent", True)},
    "XEventMetadata": {"name": (2, "string", False),
                       "stats": (5, "XStat", True)},
    "XStatMetadata": {"name": (2, "string", False)},
    # Maps, as they are on the wire.
    "EventEntry": {"key": (1, "int64", False),
                   "value": (2, "XEventMetadata", False)},
    "StatEntry": {"key": (1, "int64", False),
                  "value": (2, "XStatMetadata", False)},
    "XPlane": {"name": (2, "string", False),
               "lines": (3, "XLine", True),
               "event_metadata": (4, "EventEntry", True),
               "stat_metadata": (5, "StatEntry", True)},
    "XSpace": {"planes": (1, "XPlane", True),
               "errors": (2, "string", True), "warnings": (3, "string", True)},
}


def _build():
    file = descriptor_pb2.FileDescriptorProto(
        name="mets_opspeedup_xplane.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind, repeated) in fields.items():
            field = described.field.add(name=name, number=number)
            field.label = (_FIELD.LABEL_REPEATED if repeated
                           else _FIELD.LABEL_OPTIONAL)
            if kind in _MESSAGES:
                field.type = _FIELD.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
            for name in _MESSAGES}


_CLASSES = _build()
XLine = _CLASSES["XLine"]
XPlane = _CLASSES["XPlane"]
XSpace = _CLASSES["XSpace"]
