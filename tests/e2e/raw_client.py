"""A client made of bytes: it says to metsd what no library would."""

import socket
import struct

MAGIC = 0x5354454D
HELLO = 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_HEADERS = 4


def _varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def number(field, value):
    """A protobuf field that is a number."""
    return _varint(field << 3) + _varint(value)


def text(field, value):
    """A protobuf field of text, bytes or a message."""
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def header(name, value):
    """A header as HTTP/2 has it, in full; short ones."""
    return b"\0" + b"".join(bytes([len(t)]) + t for t in (name, value))


def token(run_dir):
    """A descriptor socket, and the token received there."""
    fd_socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd_socket.settimeout(15)
    fd_socket.connect(f"{run_dir}/fd.sock")
    fd_socket.send(struct.pack("<IHHII", MAGIC, 1, HELLO, 1, 0))
    return fd_socket, fd_socket.recv(8192)[24:56]


class Stream:
    """A call of SessionService.Connect."""

    def __init__(self, run_dir, *more_headers):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(15)
        self._socket.connect(f"{run_dir}/session.sock")
        self._socket.sendall(PREFACE + self._frame(SETTINGS, 0, b"", stream=0))
        self._socket.sendall(self._frame(HEADERS, END_HEADERS, b"".join((
            header(b":method", b"POST"), header(b":scheme", b"http"),
            header(b":path", b"/mets.v1.SessionService/Connect"),
            header(b":authority", b"localhost"), header(b"te", b"trailers"),
            header(b"content-type", b"application/grpc"), *more_headers))))

    def say(self, message):
        self._socket.sendall(self._frame(
            DATA, 0, struct.pack(">BI", 0, len(message)) + message))

    def wait_for(self, words):
        """Until metsd has answered with these."""
        got = b""
        while words not in got:
            got = got[-len(words):] + (part := self._socket.recv(65536))
            if not part:
                raise AssertionError(f"the end, and not {words}")

    def close(self):
        self._socket.close()

    @staticmethod
    def _frame(kind, flags, body, stream=1):
        return struct.pack(">I", len(body))[1:] + struct.pack(
            ">BBI", kind, flags, stream) + body
