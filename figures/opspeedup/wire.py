"""Protobuf files that do not fit into memory, field by field."""

from opspeedup.errors import ProfileError

CHUNK_BYTES = 4 << 20
LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}  # Wire type: bytes.


def _varint(data, at):
    """Value and end of the varint at `at`; IndexError: data ends within it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint of more than 10 bytes")


def header(data, at):
    """(field number, wire type, begin of the content, end of the content) of
    the field at `at`. IndexError: data ends within its header; ValueError:
    there is no field."""
    key, begin = _varint(data, at)
    number, kind = key >> 3, key & 7
    if number == 0:
        raise ValueError("a field number of 0")
    if kind == 0:
        return number, kind, begin, _varint(data, begin)[1]
    if kind == LENGTH_DELIMITED:
        size, begin = _varint(data, begin)
        return number, kind, begin, begin + size
    if kind not in _FIXED:
        raise ValueError(f"a wire type of {kind}")
    return number, kind, begin, begin + _FIXED[kind]


def whole_fields(data):
    """How many bytes at the begin of `data` are whole fields."""
    at, size = 0, len(data)
    try:
        while at < size:
            # Nearly all fields are events: a length of one byte, or of two.
            if data[at] & 135 == LENGTH_DELIMITED and data[at + 1] < 128:
                end = at + 2 + data[at + 1]
            else:
                end = header(data, at)[3]
            if end > size:
                break
            at = end
    except IndexError:
        pass
    return at


class Fields:
    """A message in a file: bytes `begin` to `end` of it."""

    def __init__(self, file, path, begin, end):
        self._file, self._path = file, path
        self._begin, self._end = begin, end

    def __iter__(self):
        """(number, wire type, begin of the field, of its content, end)"""
        at = self._begin
        while at < self._end:
            self._file.seek(at)
            head = self._file.read(min(20, self._end - at))
            try:
                number, kind, begin, end = header(head, 0)
            except (IndexError, ValueError) as error:
                raise self._broken(at, str(error)) from None
            if at + end > self._end:
                raise self._broken(
                    at, f"a field of {end} bytes where {self._end - at} are "
                    "left")
            yield number, kind, at, at + begin, at + end
            at += end

    def chunks(self):
        """The message's bytes, in pieces of whole fields: each piece is such a
        message by itself."""
        at, size = self._begin, CHUNK_BYTES
        while at < self._end:
            self._file.seek(at)
            data = self._file.read(min(size, self._end - at))
            try:
                whole = whole_fields(data)
            except ValueError as error:
                raise self._broken(at, str(error)) from None
            if whole:
                yield data[:whole]
                at, size = at + whole, CHUNK_BYTES
            elif at + len(data) >= self._end:
                raise self._broken(at, "a field longer than what it is in")
            else:
                size *= 2

    def _broken(self, at, what):
        return ProfileError(
            f"{self._path} is truncated or no profile of TensorFlow (XSpace): "
            f"at byte {at} there is {what}; copy or record it again")
